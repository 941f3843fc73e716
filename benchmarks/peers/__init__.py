"""Other tools' assumptions about the serving of language models, tool by tool."""

from __future__ import annotations

from peers import genz_llm, llm_analysis, llm_viewer, mlsysim
from peers.causes import Cause

# The causes of each tool, in the order in which they are applied.
CAUSES: dict[str, tuple[Cause, ...]] = {
    "genz-llm": genz_llm.CAUSES,
    "LLM-Viewer": llm_viewer.CAUSES,
    "llm-analysis": llm_analysis.CAUSES,
    "mlsysim": mlsysim.CAUSES,
}
