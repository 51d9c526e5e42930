package bandit

// splitNames are the values of the option names, in the order they are listed.
var splitNames = []string{"pair", "ragen-v1-train", "ragen-v1-test", "ragen-v2-train", "ragen-v2-test"}

// splits are RAGEN's sets of names, low and high arm.
var splits = map[string][]pair{
	"ragen-v1-train": {{"Phoenix", "Dragon"}},
	"ragen-v1-test":  {{"Trader", "Librarian"}},
	"ragen-v2-train": {
		{"Teacher", "Trader"}, {"Nurse", "StartupFounder"}, {"Librarian", "Investor"},
		{"Accountant", "StockBroker"}, {"Engineer", "RealEstateAgent"}, {"Pharmacist", "Musician"},
		{"Clerk", "Freelancer"}, {"Technician", "Youtuber"}, {"Planner", "Artist"},
		{"Postman", "Pilot"}, {"Banker", "VentureCapitalist"}, {"Gardener", "Cryptominer"},
	},
	"ragen-v2-test": {
		{"Receptionist", "Explorer"}, {"Archivist", "Filmmaker"}, {"Bookkeeper", "Consultant"},
		{"SocialWorker", "Photographer"}, {"Mechanic", "GameDesigner"}, {"Secretary", "Entrepreneur"},
		{"Cashier", "DataScientist"}, {"CivilServant", "StartupAccelerator"},
	},
}
