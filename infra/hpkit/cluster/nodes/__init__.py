"""Operations on single nodes: selection, draining, and requests to the service."""
