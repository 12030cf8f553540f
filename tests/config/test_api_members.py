"""Members of CreateCluster that the organization file can't express; a new member in AWS's model fails this test."""

from generate.create_cluster import ELSEWHERE, without_key


def test_the_file_says_every_property_of_create_cluster():
    assert without_key() == ELSEWHERE
