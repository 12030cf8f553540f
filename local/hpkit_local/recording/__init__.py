"""Records AWS calls with their answers, and sends recorded calls to the local endpoint."""
