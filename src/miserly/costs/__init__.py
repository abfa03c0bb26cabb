"""What features cost: the price table, and the ledger that is the only code adding prices."""

from miserly.costs.ledger import Account, Ledger, RowAccounts
from miserly.costs.table import CostTable

__all__ = ["Account", "CostTable", "Ledger", "RowAccounts"]
