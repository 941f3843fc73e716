"""What the columns of a class list are called, by the programs that write one.

Canvas: `Student` (or `LastName`, `FirstName`), `ID`, `SIS User ID`, `SIS Login ID`, `Section`, as
its source writes them (instructure/canvas-lms, lib/gradebook_exporter.rb). Gradescope: names in one
column or two, `SID`, `Email`, `Role` (guides.gradescope.com, "Adding Students and Staff"). Moodle:
its names for first name, last name, full name and identity fields, in the language of whoever saves
the list (moodle/moodle, lang/en/moodle.php, and its language packs); a grading worksheet has
`Identifier` and `Full name`, too.
"""

from __future__ import annotations

import re

from mlsim_grading.names import fold

_SAID: dict[str, str] = {
    "student": "student; students; student name; studentname; learner",
    "full": (
        "name; names; full name; fullname; display name; sortable name; first name / surname;"
        " first name / last name; surname / first name; last name / first name;"
        " vollständiger name; vorname / nachname; nachname / vorname; nom complet; prénom / nom;"
        " nom complet de l'utilisateur; nombre completo; nombre / apellido(s); nome completo;"
        " nome / cognome; cognome / nome; volledige naam; voornaam / achternaam; naam;"
        " imię / nazwisko; imię i nazwisko; fullständigt namn; fullt navn; studierende;"
        " studierender; studierende/r; studentin; teilnehmer; teilnehmer/in; étudiant; estudiante;"
        " studente; estudante; 姓名; 氏名"
    ),
    "first": (
        "first name; firstname; given name; given names; forename; vorname; vornamen; prénom;"
        " nombre; nome; voornaam; imię; förnamn; fornavn; etunimi; jméno; ad; adı; имя; 名"
    ),
    "middle": "middle name; middlename; second name; zweiter vorname",
    "last": (
        "last name; lastname; surname; family name; familyname; nachname; familienname; nom;"
        " nom de famille; apellido; apellidos; apellido(s); cognome; sobrenome; apelido;"
        " apelido(s); achternaam; nazwisko; efternamn; etternavn; efternavn; sukunimi; příjmení;"
        " soyad; soyadı; фамилия; 姓"
    ),
    "id": (
        "id; sid; sis user id; sis login id; integration id; student id; studentid; student number;"
        " id number; idnumber; identifier; participant; matriculation number; matrikelnummer;"
        " id-nummer; kennung; numéro d'étudiant; numéro d'identification; numéro de id;"
        " número de id; número de identificación; codice identificativo; número de identificação;"
        " id-nummer; numer id; username; user name; login; user id; userid; orgdefinedid; netid;"
        " anmeldename; benutzername; nom d'utilisateur; nombre de usuario; nome utente;"
        " nome de usuário; gebruikersnaam"
    ),
    "email": (
        "email; e-mail; mail; email address; e-mail address; e-mail-adresse; adresse de courriel;"
        " courriel; adresse e-mail; dirección de correo; correo electrónico; correo;"
        " indirizzo email; endereço de email; e-mailadres; adres e-mail; e-postadress; e-post"
    ),
    "also": "also; alias; aliases; also known as; other spellings",
    "role": "role; roles; rolle; rollen; rôle; rôles; rol; ruolo; ruoli; papel",
}
_KINDS = {fold(name.strip()): kind for kind, names in _SAID.items() for name in names.split(";")}
STAFF = frozenset(
    ("instructor", "ta", "teaching assistant", "reader", "teacher", "non-editing teacher",
     "trainer/in", "manager", "course creator", "observer")
)  # fmt: skip


def kind_of(column: str) -> str:
    """Return what a column holds, by its name; "" if the name isn't known.

    >>> kind_of("Last Name "), kind_of("E-Mail-Adresse"), kind_of("Group")
    ('last', 'email', '')
    """
    return _KINDS.get(fold(re.sub(r"[\s_]+", " ", column.strip().strip('"*:'))), "")
