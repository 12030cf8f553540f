"""API models are read once for all sessions."""

import botocore.session
from botocore import loaders


def test_what_one_session_has_read_another_has_too_but_for_s3():
    one, other = (botocore.session.get_session().get_component("data_loader") for _ in range(2))
    assert one is not other
    assert one.load_service_model("eks", "service-2") is other.load_service_model("eks", "service-2")
    assert one.load_service_model("s3", "service-2") is not other.load_service_model("s3", "service-2")


def test_a_loader_that_is_made_for_a_folder_still_reads_from_there(tmp_path):
    folder = tmp_path / "mine" / "2020-01-01"
    folder.mkdir(parents=True)
    (folder / "service-2.json").write_text('{"metadata": {"serviceId": "mine"}}')
    loader = loaders.create_loader(str(tmp_path))
    assert loader.load_service_model("mine", "service-2") == {"metadata": {"serviceId": "mine"}}
