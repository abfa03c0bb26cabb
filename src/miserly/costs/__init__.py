"""What features cost: the price table, and the ledger that is the only code adding prices."""

from miserly.costs._ledger import Account, Ledger, RowAccounts, set_bits
from miserly.costs._table import CostTable
from miserly.costs._total import total_price

__all__ = ["Account", "CostTable", "Ledger", "RowAccounts", "set_bits", "total_price"]
