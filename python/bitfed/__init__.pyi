from . import data as data, federation as federation, flower as flower, methods as methods, models as models
from . import perceptron as perceptron, reports as reports, tables as tables, tsetlin as tsetlin
from ._core import Failure as Failure, InputError as InputError, instruction_set as instruction_set
from .data import Partition as Partition, datasets as datasets, load_data as load_data, partition as partition
from .federation import Federation as Federation, Result as Result, run as run
from .methods import Fusion as Fusion, Method as Method
from .models import Model as Model, load as load
from .perceptron import BinaryMLPClassifier as BinaryMLPClassifier
from .recipe import recipes as recipes
from .reports import Report as Report, report as report
from .tsetlin import TsetlinClassifier as TsetlinClassifier

__version__: str
