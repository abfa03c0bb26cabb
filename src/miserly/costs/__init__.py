"""What features cost: the price table, and the ledger that is the only code adding prices."""

from miserly.costs._ledger import Account, Ledger, RowAccounts, set_bits
from miserly.costs._table import CostTable

__all__ = ["Account", "CostTable", "Ledger", "RowAccounts", "set_bits"]
