"""What features cost: the price table, and the ledger that is the only code adding prices."""

from miserly.costs._currencies import ROUNDS as ROUNDS
from miserly.costs._currencies import Caps as Caps
from miserly.costs._currencies import read_budget as read_budget
from miserly.costs._currencies import tighter as tighter
from miserly.costs._currencies import worth as worth
from miserly.costs._ledger import Account, Ledger, RowAccounts, set_bits
from miserly.costs._row_ledger import MOST as MOST
from miserly.costs._row_ledger import CurrencyLedger as CurrencyLedger
from miserly.costs._row_ledger import RowLedger as RowLedger
from miserly.costs._row_ledger import RowPrices as RowPrices
from miserly.costs._row_ledger import SpentAccount as SpentAccount
from miserly.costs._row_ledger import expecting as expecting
from miserly.costs._row_ledger import paid_by_row as paid_by_row
from miserly.costs._row_ledger import paid_for as paid_for
from miserly.costs._row_prices import LinearPrice
from miserly.costs._table import CostTable
from miserly.costs._total import total_price
from miserly.costs._tree_price import TreePrice as TreePrice

__all__ = ["Account", "CostTable", "Ledger", "LinearPrice", "RowAccounts", "set_bits", "total_price"]
