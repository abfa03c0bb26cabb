"""What may go wrong with remote rows."""


class RowsLostError(ConnectionError):
    """Some rows went with the machine that held them; the backend can be repaired, and the round repeated."""


class BackendLostError(ConnectionError):
    """Where the rows are cannot be reached any more. The rounds that are done are kept: `warm_start` goes on."""
