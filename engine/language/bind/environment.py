"""What a statement is bound against: streams, views, and the names that WITH gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from engine.language.bind.from_names import FromNames
from engine.language.bind.relation import BoundRelation
from engine.language.bind.scope import Scope
from engine.language.bind.text_binding import Sizes, TextBinding
from engine.language.functions import BUILT_IN, FunctionCatalogue
from engine.language.places import Place, Text
from engine.model.limits import Limits
from engine.model.source import Derived, SourceName, Stream
from engine.model.summary import SummaryDefinition, SummaryName

Catalogue = Mapping[str, Stream | Derived]
Summaries = Mapping[SummaryName, SummaryDefinition]
"""The summaries of the catalogue's streams, by name; a summary may have the name of a stream or a view."""

NO_SUMMARIES: Summaries = {}


@dataclass(frozen=True, slots=True)
class Environment:
    """What names stand for in a text.

    tables: of WITH, in sight here. derived: views that were bound for this statement, and uses: their names,
    as they were met. met: streams and tables, and where the statement names them, or the view that does,
    which is at ``around``. depth: how many views are around this text. summaries: of the catalogue's streams.
    """

    text: Text
    limits: Limits
    catalogue: Catalogue
    tables: Mapping[str, BoundRelation] = field(default_factory=dict)
    derived: dict[str, BoundRelation] = field(default_factory=dict)
    uses: dict[SourceName, None] = field(default_factory=dict)
    met: dict[SourceName, Place] = field(default_factory=dict)
    around: Place | None = None
    depth: int = 0
    functions: FunctionCatalogue = BUILT_IN
    sizes: Sizes = field(default_factory=Sizes)
    summaries: Summaries = field(default_factory=dict)

    def scope(self, relation: BoundRelation, name: str | None) -> Scope:
        """The columns of a relation."""
        columns = {output.name: output for output in relation.columns}
        binding = TextBinding(self.text, self.limits, self.functions, self.sizes)
        return Scope(binding, FromNames(relation.stream, columns, name))

    def knowing(self, name: str, relation: BoundRelation) -> Environment:
        """With one more name of WITH."""
        return replace(self, tables={**self.tables, name: relation})

    def inside(self, text: Text, place: Place) -> Environment:
        """For the text of a view that is named at this place."""
        return replace(self, text=text, tables={}, depth=self.depth + 1, around=self.around or place)
