"""The places the fleet drives between: real ones, at their real coordinates, and the corridors that join them."""

from typing import NamedTuple


class Place(NamedTuple):
    """A town with a yard for trucks."""

    name: str
    region: str
    lat: float
    lon: float


PLACES = {
    place.name: place
    for place in (
        Place("Rotterdam", "Netherlands", 51.9244, 4.4777),
        Place("Utrecht", "Netherlands", 52.0907, 5.1214),
        Place("Arnhem", "Netherlands", 51.9851, 5.8987),
        Place("Antwerpen", "Belgium", 51.2194, 4.4025),
        Place("Bruxelles", "Belgium", 50.8503, 4.3517),
        Place("Liège", "Belgium", 50.6326, 5.5797),
        Place("Duisburg", "Germany", 51.4344, 6.7623),
        Place("Köln", "Germany", 50.9375, 6.9603),
        Place("Dortmund", "Germany", 51.5136, 7.4653),
        Place("Bremen", "Germany", 53.0793, 8.8017),
        Place("Hamburg", "Germany", 53.5511, 9.9937),
        Place("Flensburg", "Germany", 54.7937, 9.4469),
        Place("Hannover", "Germany", 52.3759, 9.7320),
        Place("Kassel", "Germany", 51.3127, 9.4797),
        Place("Berlin", "Germany", 52.5200, 13.4050),
        Place("Leipzig", "Germany", 51.3397, 12.3731),
        Place("Dresden", "Germany", 51.0504, 13.7373),
        Place("Frankfurt", "Germany", 50.1109, 8.6821),
        Place("Mannheim", "Germany", 49.4875, 8.4660),
        Place("Karlsruhe", "Germany", 49.0069, 8.4037),
        Place("Stuttgart", "Germany", 48.7758, 9.1829),
        Place("Würzburg", "Germany", 49.7913, 9.9534),
        Place("Nürnberg", "Germany", 49.4521, 11.0767),
        Place("München", "Germany", 48.1351, 11.5820),
        Place("Kolding", "Denmark", 55.4904, 9.4722),
        Place("Odense", "Denmark", 55.4038, 10.4024),
        Place("København", "Denmark", 55.6761, 12.5683),
        Place("Basel", "Switzerland", 47.5596, 7.5886),
        Place("Zürich", "Switzerland", 47.3769, 8.5417),
        Place("Lugano", "Switzerland", 46.0037, 8.9511),
        Place("Milano", "Italy", 45.4642, 9.1900),
        Place("Verona", "Italy", 45.4384, 10.9916),
        Place("Bologna", "Italy", 44.4949, 11.3426),
        Place("Firenze", "Italy", 43.7696, 11.2558),
        Place("Roma", "Italy", 41.9028, 12.4964),
        Place("Napoli", "Italy", 40.8518, 14.2681),
        Place("Innsbruck", "Austria", 47.2692, 11.4041),
        Place("Salzburg", "Austria", 47.8095, 13.0550),
        Place("Linz", "Austria", 48.3069, 14.2858),
        Place("Wien", "Austria", 48.2082, 16.3738),
        Place("Praha", "Czechia", 50.0755, 14.4378),
        Place("Brno", "Czechia", 49.1951, 16.6068),
        Place("Bratislava", "Slovakia", 48.1486, 17.1077),
        Place("Budapest", "Hungary", 47.4979, 19.0402),
        Place("Poznań", "Poland", 52.4064, 16.9252),
        Place("Łódź", "Poland", 51.7592, 19.4560),
        Place("Warszawa", "Poland", 52.2297, 21.0122),
        Place("Wrocław", "Poland", 51.1079, 17.0385),
        Place("Katowice", "Poland", 50.2649, 19.0238),
        Place("Kraków", "Poland", 50.0647, 19.9450),
        Place("Lille", "France", 50.6292, 3.0573),
        Place("Paris", "France", 48.8566, 2.3522),
        Place("Reims", "France", 49.2583, 4.0317),
        Place("Metz", "France", 49.1193, 6.1757),
        Place("Strasbourg", "France", 48.5734, 7.7521),
        Place("Dijon", "France", 47.3220, 5.0415),
        Place("Lyon", "France", 45.7640, 4.8357),
        Place("Avignon", "France", 43.9493, 4.8055),
        Place("Marseille", "France", 43.2965, 5.3698),
        Place("Montpellier", "France", 43.6108, 3.8767),
        Place("Perpignan", "France", 42.6887, 2.8948),
        Place("Tours", "France", 47.3941, 0.6848),
        Place("Poitiers", "France", 46.5802, 0.3404),
        Place("Bordeaux", "France", 44.8378, -0.5792),
        Place("Bayonne", "France", 43.4929, -1.4748),
        Place("Burgos", "Spain", 42.3439, -3.6969),
        Place("Madrid", "Spain", 40.4168, -3.7038),
        Place("Zaragoza", "Spain", 41.6488, -0.8891),
        Place("Barcelona", "Spain", 41.3874, 2.1686),
        Place("Valencia", "Spain", 39.4699, -0.3763),
    )
}

CORRIDORS: dict[str, tuple[str, ...]] = {
    "North Sea to Vistula": (
        "Rotterdam",
        "Utrecht",
        "Arnhem",
        "Duisburg",
        "Dortmund",
        "Hannover",
        "Berlin",
        "Poznań",
        "Łódź",
        "Warszawa",
    ),
    "Rhine to the Alps": (
        "Rotterdam",
        "Arnhem",
        "Duisburg",
        "Köln",
        "Frankfurt",
        "Mannheim",
        "Karlsruhe",
        "Strasbourg",
        "Basel",
    ),
    "Gotthard": ("Basel", "Zürich", "Lugano", "Milano", "Bologna", "Firenze", "Roma", "Napoli"),
    "Brenner": ("Hamburg", "Hannover", "Kassel", "Würzburg", "Nürnberg", "München", "Innsbruck", "Verona", "Bologna"),
    "Jutland": ("København", "Odense", "Kolding", "Flensburg", "Hamburg", "Bremen", "Dortmund", "Köln"),
    "Danube": ("Nürnberg", "München", "Salzburg", "Linz", "Wien", "Bratislava", "Budapest"),
    "Elbe": ("Hamburg", "Berlin", "Leipzig", "Dresden", "Praha", "Brno", "Bratislava", "Budapest"),
    "Flanders to Rhône": ("Antwerpen", "Bruxelles", "Lille", "Reims", "Dijon", "Lyon", "Avignon", "Marseille"),
    "Atlantic": ("Bruxelles", "Lille", "Paris", "Tours", "Poitiers", "Bordeaux", "Bayonne", "Burgos", "Madrid"),
    "Mediterranean": ("Lyon", "Avignon", "Montpellier", "Perpignan", "Barcelona", "Valencia"),
    "Ebro": ("Madrid", "Zaragoza", "Barcelona", "Perpignan", "Montpellier", "Marseille"),
    "Silesia": ("Dresden", "Wrocław", "Katowice", "Kraków"),
    "Meuse to Swabia": ("Antwerpen", "Liège", "Köln", "Frankfurt", "Würzburg", "Nürnberg"),
    "Champagne to Bavaria": ("Paris", "Reims", "Metz", "Strasbourg", "Karlsruhe", "Stuttgart", "München"),
    "Amber road": ("Warszawa", "Łódź", "Katowice", "Brno", "Wien"),
}
"""Every corridor by its name: the places it passes, in order."""

HUBS = (
    "Rotterdam", "Duisburg", "Hamburg", "Berlin", "Frankfurt", "München", "Basel", "Milano",
    "Wien", "Praha", "Warszawa", "Paris", "Lyon", "Barcelona", "Madrid",
)  # fmt: skip
"""Places whose yards are watched: a truck that comes or goes is an event."""
