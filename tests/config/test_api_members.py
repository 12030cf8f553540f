"""What CreateCluster takes and the organization file can't say: a property that AWS adds makes this test fail."""

from generate.create_cluster import ELSEWHERE, without_key


def test_the_file_says_every_property_of_create_cluster():
    assert without_key() == ELSEWHERE
