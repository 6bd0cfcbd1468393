package sanitize

// The words that invented values consist of. Their order and number determine every masked value:
// after a change, masked values no longer match those of earlier snapshots (decision 33). A test
// detects changes.

// firstNames are given names of many countries.
var firstNames = [...]string{
	"Ada", "Adam", "Agnes", "Ahmed", "Aiko", "Aisha", "Alan", "Albert", "Alejandro", "Alice", "Alma", "Amara", "Amelia",
	"Amina", "Amir", "Ana", "Anders", "Andrea", "Anika", "Anita", "Anna", "Anton", "Arjun", "Astrid", "Aurora", "Axel",
	"Barbara", "Beatriz", "Benjamin", "Bianca", "Birgit", "Boris", "Bruno", "Camila", "Carla", "Carlos", "Carmen",
	"Caroline", "Cecilia", "Chiara", "Chloe", "Christian", "Clara", "Claude", "Connor", "Cristina", "Cyrus", "Daniel",
	"Daria", "David", "Diana", "Diego", "Dmitri", "Dora", "Edith", "Eduardo", "Elena", "Eleni", "Elias", "Elif", "Elin",
	"Elisa", "Ella", "Emil", "Emilia", "Emma", "Enzo", "Erik", "Esther", "Eva", "Fabian", "Fatima", "Felix", "Fernanda",
	"Fiona", "Florian", "Francesca", "Frank", "Frida", "Gabriel", "Georg", "Giulia", "Grace", "Greta", "Hana", "Hannah",
	"Hans", "Harald", "Hassan", "Heidi", "Helen", "Henrik", "Hiro", "Hugo", "Ibrahim", "Ida", "Igor", "Ines", "Ingrid",
	"Irene", "Irina", "Isaac", "Isabel", "Ivan", "Jack", "Jakob", "James", "Jana", "Jasmin", "Javier", "Joan", "Johan",
	"Jonas", "Jorge", "Joseph", "Judith", "Julia", "Julian", "Kamal", "Karin", "Karl", "Katarina", "Kemal", "Kenji",
	"Khalid", "Klara", "Kofi", "Lara", "Lars", "Laura", "Lea", "Leila", "Lena", "Leo", "Leon", "Lida", "Liam", "Lina",
	"Linda", "Lisa", "Lorenzo", "Louis", "Lucas", "Lucia", "Luis", "Luna", "Magnus", "Malik", "Manuel", "Marco",
	"Maria", "Marie", "Marina", "Mario", "Marta", "Martin", "Mateo", "Mathilde", "Maya", "Mei", "Mia", "Michael",
	"Miguel", "Milan", "Mina", "Mira", "Mohamed", "Monika", "Nadia", "Naomi", "Natalia", "Nathan", "Nils", "Nina",
	"Noah", "Nora", "Olaf", "Olga", "Oliver", "Olivia", "Omar", "Oscar", "Pablo", "Paolo", "Paul", "Paula", "Pavel",
	"Pedro", "Petra", "Philip", "Priya", "Rachel", "Rafael", "Rania", "Raul", "Rebecca", "Renata", "Ricardo", "Rita",
	"Robert", "Rosa", "Ruben", "Ruth", "Samir", "Samuel", "Sandra", "Sara", "Sebastian", "Selma", "Sergio", "Silvia",
	"Simon", "Sofia", "Sonja", "Stefan", "Stella", "Sven", "Sylvia", "Tamar", "Tanja", "Tariq", "Teresa", "Theo",
	"Thomas", "Tomas", "Uma", "Ursula", "Valentina", "Vera", "Victor", "Viktoria", "Viola", "Walter", "Wanda", "Wei",
	"Werner", "William", "Xavier", "Yara", "Yasmin", "Yuki", "Yusuf", "Zara", "Zoe",
}

// lastNames are family names of many countries.
var lastNames = [...]string{
	"Abbott", "Adler", "Aguilar", "Ahmadi", "Albrecht", "Almeida", "Alvarez", "Andersen", "Andrade", "Arnold", "Asante",
	"Aydin", "Baker", "Barbieri", "Barros", "Bauer", "Becker", "Beltran", "Bennett", "Berg", "Bergmann", "Bianchi",
	"Blanc", "Bloom", "Boateng", "Bond", "Borg", "Brandt", "Braun", "Brooks", "Brown", "Bruno", "Burke", "Byrne",
	"Cabrera", "Campbell", "Cardoso", "Carlsen", "Carter", "Castillo", "Chandra", "Chen", "Christensen", "Clark",
	"Cohen", "Colombo", "Conti", "Cooper", "Costa", "Cruz", "Dahl", "Dalton", "Danielsen", "Das", "Davis", "Dekker",
	"Delgado", "Demir", "Diaz", "Dietrich", "Dixon", "Dubois", "Duarte", "Dumont", "Duran", "Eriksen", "Espinoza",
	"Evans", "Farrell", "Fernandes", "Ferrari", "Fischer", "Fleming", "Flores", "Fontaine", "Forster", "Fournier",
	"Foster", "Frank", "Freitas", "Friedrich", "Fuchs", "Fujita", "Fuentes", "Gallo", "Garcia", "Garnier", "Gibson",
	"Girard", "Gomez", "Graf", "Graham", "Grant", "Greco", "Green", "Griffin", "Gruber", "Guerrero", "Gupta", "Haas",
	"Hahn", "Hall", "Hansen", "Harper", "Harris", "Hart", "Hartmann", "Haugen", "Hayashi", "Hayes", "Hernandez",
	"Herrera", "Hofmann", "Holm", "Horvat", "Huang", "Huber", "Hughes", "Ibarra", "Ito", "Ivanov", "Jackson", "Jain",
	"Jansen", "Jensen", "Johansson", "Jones", "Jordan", "Kaiser", "Kamara", "Kapoor", "Karlsson", "Kaya", "Keller",
	"Kelly", "Khan", "Kim", "King", "Klein", "Koch", "Kowalski", "Kraft", "Kramer", "Kruger", "Kumar", "Lang", "Larsen",
	"Laurent", "Lee", "Lehmann", "Lemaire", "Leroy", "Lewis", "Lima", "Lind", "Lindberg", "Lopez", "Lorenz", "Lund",
	"Maier", "Malik", "Mancini", "Marino", "Marques", "Martens", "Martin", "Martinez", "Mason", "Mata", "Mayer",
	"Medina", "Mehta", "Melo", "Mendes", "Mensah", "Mercier", "Meyer", "Miller", "Molina", "Moller", "Monteiro",
	"Moreau", "Moreno", "Morgan", "Mori", "Moser", "Muller", "Murphy", "Nair", "Nakamura", "Navarro", "Neumann",
	"Nguyen", "Nielsen", "Nilsson", "Novak", "Nowak", "Nunes", "Ochoa", "Okafor", "Olsen", "Ortega", "Ortiz", "Osei",
	"Otto", "Owens", "Pacheco", "Palmer", "Park", "Patel", "Pereira", "Perez", "Perrin", "Petersen", "Peterson",
	"Petrov", "Pfeiffer", "Phillips", "Pires", "Popov", "Porter", "Price", "Quinn", "Ramirez", "Ramos", "Rasmussen",
	"Reed", "Reid", "Reis", "Reyes", "Ribeiro", "Richter", "Rios", "Rivera", "Roberts", "Robin", "Rocha", "Rojas",
	"Romano", "Romero", "Rossi", "Roth", "Roux", "Ruiz", "Russo", "Ryan", "Saito", "Salazar", "Salim", "Sanchez",
	"Santos", "Sato", "Sauer", "Schmidt", "Schneider", "Scholz", "Schubert", "Schulz", "Schwarz", "Seidel", "Serra",
	"Shah", "Sharma", "Silva", "Simon", "Singh", "Smith", "Soares", "Solberg", "Sommer", "Soto", "Souza", "Stein",
	"Stewart", "Stone", "Strand", "Suarez", "Suzuki", "Svensson", "Takeda", "Tanaka", "Tavares", "Taylor", "Teixeira",
	"Thomas", "Torres", "Tran", "Turner", "Vargas", "Vasquez", "Vega", "Vidal", "Vogel", "Vogt", "Wagner", "Walker",
	"Wang", "Ward", "Watson", "Weber", "Weiss", "Wells", "White", "Wilson", "Winter", "Wolf", "Wong", "Wood", "Wright",
	"Yamada", "Yilmaz", "Young", "Zhang", "Ziegler", "Zimmermann",
}

// streetNames are names of streets, each followed by one of streetKinds.
var streetNames = [...]string{
	"Acorn", "Alder", "Anchor", "Apple", "Ash", "Aspen", "Baker", "Bay", "Beech", "Bell", "Birch", "Bluebell",
	"Bramble", "Bridge", "Brook", "Canal", "Cedar", "Chapel", "Chestnut", "Church", "Clay", "Clover", "Copper", "Coral",
	"Cottage", "Creek", "Crescent", "Dale", "Elm", "Falcon", "Farm", "Fern", "Field", "Finch", "Forest", "Fox",
	"Garden", "Gate", "Glen", "Granary", "Grove", "Harbour", "Harvest", "Hawthorn", "Hazel", "Heather", "Heron", "High",
	"Hill", "Holly", "Iris", "Island", "Ivy", "Juniper", "Kestrel", "King", "Lake", "Lantern", "Larch", "Laurel",
	"Lavender", "Lily", "Lime", "Linden", "Linen", "Maple", "Market", "Meadow", "Mill", "Mint", "Moss", "North", "Oak",
	"Olive", "Orchard", "Park", "Pearl", "Pine", "Plum", "Pond", "Poplar", "Prospect", "Quarry", "Queen", "Raven",
	"Ridge", "River", "Robin", "Rose", "Rowan", "Saffron", "School", "Silver", "South", "Spring", "Spruce", "Station",
	"Stone", "Summer", "Sunset", "Swan", "Sycamore", "Temple", "Thistle", "Valley", "View", "Vine", "Violet", "Walnut",
	"Water", "West", "Willow", "Wren",
}

// streetKinds are the words at the end of names of streets.
var streetKinds = [...]string{
	"Street", "Road", "Lane", "Avenue", "Way", "Court", "Drive", "Row", "Square", "Terrace", "Walk", "Close",
}

// cities are cities of many countries.
var cities = [...]string{
	"Aarhus", "Aberdeen", "Adelaide", "Amsterdam", "Ankara", "Antwerp", "Athens", "Atlanta", "Auckland", "Austin",
	"Barcelona", "Basel", "Belfast", "Belgrade", "Bergen", "Berlin", "Bern", "Bilbao", "Bogota", "Bologna", "Bordeaux",
	"Boston", "Bratislava", "Bremen", "Brisbane", "Bristol", "Brno", "Brussels", "Bucharest", "Budapest", "Cairo",
	"Calgary", "Cardiff", "Casablanca", "Chicago", "Cologne", "Copenhagen", "Cork", "Dakar", "Dallas", "Delft",
	"Denver", "Dresden", "Dublin", "Dundee", "Durban", "Edinburgh", "Eindhoven", "Florence", "Frankfurt", "Gdansk",
	"Geneva", "Genoa", "Ghent", "Glasgow", "Gothenburg", "Granada", "Graz", "Grenoble", "Hamburg", "Hanover",
	"Helsinki", "Istanbul", "Izmir", "Jakarta", "Kyoto", "Lagos", "Lausanne", "Leeds", "Leipzig", "Lille", "Lima",
	"Linz", "Lisbon", "Liverpool", "Ljubljana", "London", "Lucerne", "Lyon", "Madrid", "Malmo", "Manchester", "Manila",
	"Marseille", "Melbourne", "Milan", "Minneapolis", "Montreal", "Munich", "Nairobi", "Nantes", "Naples", "Nice",
	"Odense", "Oporto", "Osaka", "Oslo", "Ottawa", "Oviedo", "Padua", "Palermo", "Paris", "Perth", "Pisa", "Pittsburgh",
	"Porto", "Portland", "Poznan", "Prague", "Quebec", "Quito", "Rennes", "Riga", "Rome", "Rotterdam", "Salzburg",
	"Santiago", "Seattle", "Seoul", "Seville", "Sofia", "Split", "Stockholm", "Strasbourg", "Stuttgart", "Sydney",
	"Tallinn", "Tampere", "Tartu", "Tokyo", "Toronto", "Toulouse", "Trieste", "Trondheim", "Tunis", "Turin", "Turku",
	"Utrecht", "Valencia", "Vancouver", "Venice", "Verona", "Vienna", "Vilnius", "Warsaw", "Wellington", "Winnipeg",
	"Wroclaw", "York", "Zagreb", "Zurich",
}

// trades are lines of business of companies.
var trades = [...]string{
	"Analytics", "Bakery", "Books", "Brewing", "Builders", "Carpets", "Ceramics", "Chemicals", "Coffee", "Consulting",
	"Dairy", "Design", "Electric", "Energy", "Engineering", "Fabrics", "Farms", "Films", "Foods", "Freight",
	"Furniture", "Glass", "Grain", "Hardware", "Health", "Holdings", "Instruments", "Labs", "Lighting", "Logistics",
	"Machines", "Marine", "Media", "Metals", "Mobility", "Motors", "Networks", "Optics", "Packaging", "Paints", "Paper",
	"Pharma", "Plastics", "Power", "Press", "Printing", "Robotics", "Seeds", "Services", "Software", "Solar", "Steel",
	"Studios", "Supplies", "Systems", "Telecom", "Textiles", "Timber", "Tools", "Toys", "Trading", "Transport",
	"Travel", "Ventures", "Works",
}

// companyForms are legal forms.
var companyForms = [...]string{
	"Ltd", "Inc", "GmbH", "AG", "SA", "BV", "AB", "Oy", "SpA", "LLC",
}
