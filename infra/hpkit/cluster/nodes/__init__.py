"""Operations on single nodes: which are meant, what runs there, drained, and handed to the service."""
