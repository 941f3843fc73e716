"""The words a book puts before its numbers and on its boxes, in its language.

`lang:` picks one of the languages below; `language:` (a mapping, or the name of a
YAML file) and `_language.yml` change single words, by the keys that Quarto uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mlsim_book.labels import WORDS
from mlsim_book.yamlfile import read_yaml

if TYPE_CHECKING:
    from pathlib import Path

_KEYS = (
    "crossref-fig-title", "crossref-tbl-title", "crossref-lst-title", "crossref-thm-title",
    "crossref-lem-title", "crossref-cor-title", "crossref-prp-title", "crossref-cnj-title",
    "crossref-def-title", "crossref-exm-title", "crossref-exr-title", "crossref-ch-prefix",
    "crossref-apx-prefix", "crossref-sec-prefix", "crossref-eq-prefix",
    "environment-proof-title", "environment-remark-title", "environment-solution-title",
    "callout-note-title", "callout-tip-title", "callout-warning-title",
    "callout-important-title", "callout-caution-title", "code-summary",
    "section-title-abstract", "toc-title-document",
)  # fmt: skip

# In the order of the keys.
_LANGUAGES: Mapping[str, str] = {
    "en": "Figure Table Listing Theorem Lemma Corollary Proposition Conjecture Definition Example "
    "Exercise Chapter Appendix Section Equation Proof Remark Solution Note Tip Warning "
    "Important Caution Code Abstract Table_of_contents",
    "de": "Abbildung Tabelle Listing Theorem Lemma Korollar Aussage Annahme Definition Beispiel "
    "Übungsaufgabe Kapitel Anhang Kapitel Gleichung Beweis Anmerkung Lösung Hinweis Tipp Warnung "
    "Wichtig Vorsicht Code Zusammenfassung Inhaltsverzeichnis",
    "fr": "Figure Table Listing Théorème Lemme Corollaire Proposition Conjecture Définition "
    "Exemple Exercice Chapitre Annexe Section Équation Preuve Remarque Solution Note Astuce "
    "Avertissement Important Mise_en_garde Code Résumé Table_des_matières",
    "es": "Figura Tabla Listado Teorema Lema Corolario Proposición Conjetura Definición Ejemplo "
    "Ejercicio Capítulo Apéndice Sección Ecuación Demostración Observación Solución Nota Tip "
    "Advertencia Importante Precaución Código Resumen Tabla_de_contenidos",
    "it": "Figura Tabella Lista Teorema Lemma Corollario Proposizione Congettura Definizione "
    "Esempio Esercizio Capitolo Appendice Sezione Equazione Dimostrazione Osservazione Soluzione "
    "Nota Consiglio Avviso Importante Attenzione Codice Sommario Indice",
    "pt": "Figura Tabela Listagem Teorema Lema Corolário Proposição Conjetura Definição Exemplo "
    "Exercício Capítulo Apêndice Seção Equação Comprovação Comentário Solução Nota Dica Aviso "
    "Importante Cuidado Código Resumo Índice",
    "nl": "Figuur Tabel Listing Stelling Lemma Conclusie Voorstel Aanname Definitie Voorbeeld "
    "Oefening Hoofdstuk Bijlage Paragraaf Vergelijking Bewijs Opmerking Oplossing Opmerking Tip "
    "Waarschuwing Belangrijk Opgelet Code Samenvatting Inhoudsopgave",
}
_ENGLISH = "en"
_FILES = ("_language.yml", "_language.yaml")


def known_language(lang: str) -> bool:
    """Say whether there are words for a language.

    >>> known_language("de-CH"), known_language("xx")
    (True, False)
    """
    return lang.split("-", maxsplit=1)[0].lower() in _LANGUAGES


def words_of(lang: str, own: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Return the words of a language by Quarto's keys, changed by a book's own.

    A language that isn't known gets the English ones.

    >>> words = words_of("de", {"crossref-fig-title": "Abb."})
    >>> words["crossref-fig-title"], words["crossref-tbl-title"]
    ('Abb.', 'Tabelle')
    """
    row = _LANGUAGES.get(lang.split("-", maxsplit=1)[0].lower(), _LANGUAGES[_ENGLISH])
    words = {key: word.replace("_", " ") for key, word in zip(_KEYS, row.split(), strict=True)}
    words.update(
        {key: str(text) for key, text in (own or {}).items() if not isinstance(text, dict)}
    )
    nested = (own or {}).get(lang)
    return {**words, **nested} if isinstance(nested, dict) else words


def own_words(metadata: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """Return the words that a book gives itself: `_language.yml`, then `language:`."""
    given = metadata.get("language")
    names = [*_FILES, *([given] if isinstance(given, str) else [])]
    words: dict[str, Any] = {}
    for name in names:
        if (root / name).is_file():
            data = read_yaml(root / name, name=name).data
            words.update(data if isinstance(data, dict) else {})
    return {**words, **(given if isinstance(given, dict) else {})}


def kind_words(words: Mapping[str, str]) -> dict[str, str]:
    """Return the word for each kind of label: fig -> Figure.

    >>> kind_words(words_of("fr"))["exr"], kind_words(words_of("fr"))["sol"]
    ('Exercice', 'Solution')
    """
    special = {
        "sec": "crossref-sec-prefix", "eq": "crossref-eq-prefix",
        "sol": "environment-solution-title",
        "rem": "environment-remark-title", "nte": "callout-note-title", "tip": "callout-tip-title",
        "wrn": "callout-warning-title", "imp": "callout-important-title",
        "cau": "callout-caution-title",
    }  # fmt: skip
    return {
        kind: words.get(special.get(kind, f"crossref-{kind}-title"), english)
        for kind, english in WORDS.items()
    }
