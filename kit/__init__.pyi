# What editors and type checkers see of `kit`. `__init__.py` loads each name at its first use.
from typing import Any

from .checks import stated_confidence as stated_confidence

# From their modules: a room's function and its module may share a name.
from .data.load import load as load
from .data.load import save as save
from .errors import BudgetError as BudgetError
from .errors import DataError as DataError
from .errors import JudgeDownError as JudgeDownError
from .errors import KitError as KitError
from .errors import MissingError as MissingError
from .evaluation import answer as answer
from .evaluation import compare as compare
from .judging import Budget as Budget
from .judging import Ledger as Ledger
from .judging import judge_of as judge_of
from .judging.runner import ajudge as ajudge
from .judging.runner import estimate as estimate
from .judging.runner import judge as judge
from .people import agreement_report as agreement_report
from .people import label as label
from .people import rate as rate
from .people.view import view as view
from .plots import plot as plot
from .records import Criterion as Criterion
from .records import Grade as Grade
from .records import Response as Response
from .records import Run as Run
from .records import Task as Task
from .records import Verdict as Verdict
from .records.tables import Results
from .records.tables import per_group as per_group
from .records.tables import show as show
from .records.tables import table as table
from .rewards import Composer as Composer
from .rewards import explain as explain
from .rewards import grade as grade
from .rewards import trivial as trivial
from .rubrics import split as split
from .rubrics import summarize as summarize
from .rubrics.draft import draft as draft
from .rubrics.lint import lint as lint
from .runs import start as start
from .stats import Estimate as Estimate
from .stats import agree as agree
from .stats import calibration as calibration
from .stats import kappa as kappa
from .stats import mean as mean
from .stats.calibration import ece as ece
from .stats.calibration import recalibrate as recalibrate
from .stats.calibration import reliability as reliability
from .stats.calibration import risk_coverage as risk_coverage
from .stats.calibration import sensitivity as sensitivity
from .training import reward_function as reward_function
from .training import train as train
from .tuning.audit import audit as audit
from .tuning.workbench import Workbench

__version__: str
workbench = Workbench

def guide() -> Results: ...

# The rooms.
def __getattr__(name: str) -> Any: ...
