package main

// group is words that are one token each in the starter's second tokenizer.
type group struct {
	// why says which text has the words.
	why string
	// words are separated by white space. Each is a token alone, as at the beginning of a
	// line or after a bracket, and another with a space before it.
	words string
	// said are words that are tokens with a space before them only: words of sentences.
	said string
	// exact are further tokens as they stand. Each joins two tokens that exist.
	exact []string
}

// groups are the words of the second tokenizer, which continues the first. They are the
// only thing that it depends on besides the merges of the first. It follows no environment,
// and no text of the project: an environment that comes later chooses its words from this
// list, or is spelt in pieces, or is a matter for a third tokenizer. So a change here breaks
// the bits of every run that named the second, and a test compares the result with a digest.
var groups = []group{
	{
		why: "Tags of protocols: VAGEN's observation, reasoning and prediction, a switch and a subgoal, " +
			"the action of those that call it so, and tool calls. The opening tag is one token and \">\"; of a closing one the name is a token.",
		words: "observation reasoning prediction switch subgoal action tool result call memory summary",
		exact: []string{"<observation", "<reasoning", "<prediction", "<switch", "<subgoal", "<action", "<tool", "<result", "<call", "<memory", "<summary", ">\n"},
	},
	{
		why:   "What a switch says. The pieces join no two cells of a grid, so that grids stay a token a cell.",
		exact: []string{"IT", "WIT", "SWIT", "SWITC", "SWITCH", " SWIT", " SWITC", " SWITCH", "EE", "KEE", "KEEP", " KEEP"},
	},
	{
		why:  "Subgoals, in all environments.",
		said: "reach find open collect compare keep plan subgoals goals near avoid toward behind next then check before after",
	},
	{
		why: "Claims about a grid and VAGEN's relations: object, vertical, horizontal.",
		said: "above below left right same player box boxes target targets goal hole holes wall floor cell row column place empty solved up down near far on at is and not none " +
			"beside between north south east west center corner edge grid board position stands moves moved free blocked ice frozen room",
		exact: []string{"),", ").", " ;", " ="},
	},
	{
		why: "Tools: a calculator, retrieval, the submission of an answer, and what they say.",
		said: "calculate search find finish submit lookup open read answer result results value error invalid unknown nothing found passage document title source question query number " +
			"calculator compute tools calls call argument arguments returns gives limit used once name text line lines file page pages list",
		exact: []string{"](", ")]", " [", " ]", "==", " ==", " <=", " >", " >="},
	},
	{
		why:  "Checklists: items that hold or fail.",
		said: "checklist item items pass passes passed fail fails failed done yes no true false must met rule rules score reward rewards bonus cost penalty",
	},
	{
		why:   "Environments of two roles, such as a lake for two: one reads the map, the other walks.",
		words: "Reader Walker Guide Message Role",
		said:  "message role says tell reader walker guide partner team reads walks sees see hears heard tells told said ask asks other both map route path way safe danger only cannot can",
	},
	{
		why: "Second attempts: SCoRe's instruction and what a policy says of its first answer.",
		said: "attempt attempts second third again mistake mistakes error errors correct correctly incorrect fix review previous improve better " +
			"solution final sure might There please Please carefully Check Your Try different",
	},
	{
		why:   "RAGEN's protocol, wording differs from ours.",
		words: "Your Always Strictly Observation State Actions Available History Current",
		said: "thoughts meaning symbol symbols available actions make remaining output extra strictly follow format executed valid " +
			"separator maximum tokens response environment observe history current let think step first should would",
		exact: []string{"'re", "\n\n"},
	},
	{
		why:   "The example of a new environment in the documentation.",
		words: "Higher Lower Guess",
		said:  "higher lower guess",
	},
	{
		why: "WebShop's pages: titles, buttons, and the separator of texts.",
		words: "Back Search Page Next Prev Price Rating Description Features Reviews Attributes Buy Now Instruction WebShop Total results " +
			"back search page next prev price rating description features reviews attributes buy now instruction click clicked button buttons content size color Thank",
		exact: []string{"EP", "SEP", "[search", "[back", "[next", "[buy", "[description", "[features", "[reviews", "[attributes", "[button", "[clicked",
			"_]", "]\n", " $", "<content"},
	},
	{
		why:   "WebShop's instructions, its wrapper's advice, and what may be said of products.",
		words: "brand style flavor scent material pack",
		said: "under type count item product dollars looking need want would like with and price lower than that has have some pair set shopping shop store " +
			"options option choose chosen select selected matches match matching all products category queries instead prefer most ten code score " +
			"purchase bought cheap cheaper expensive twice",
	},
	{
		why: "The starter catalogue: kinds of products and their attributes.",
		said: "shirt shoes boots jacket coat dress pants shorts socks hat scarf gloves belt watch ring bag wallet " +
			"mug cup bowl plate bottle kettle pan knife spoon lamp candle clock mirror frame rug curtain pillow blanket towel chair table desk shelf sofa bed " +
			"soap lotion brush comb cream tea coffee snack nuts honey cable charger speaker phone case keyboard mouse camera toy puzzle ball tent " +
			"cotton wool leather linen silk wooden wood steel glass bamboo ceramic rubber plastic metal " +
			"soft light heavy warm cool dry waterproof washable portable wireless folding organic natural vegan fresh sweet salty " +
			"modern classic vintage plain striped round square slim thick thin strong quiet bright clean new kids men women home office outdoor travel",
	},
	{
		why: "The starter catalogue: values that are clicked, which are colours (of the list in WebShop's rule), sizes and flavours.",
		words: "black white red blue green yellow pink purple orange brown grey gray gold silver beige navy khaki teal ivory " +
			"small medium large wide narrow short long mini tall mint vanilla lemon rose",
	},
	{
		why:  "The starter catalogue: brands that nobody has.",
		said: "Alder Birch Cedar Clover Ember Fern Harbor Juniper Lumen Maple Meadow Orchard Pebble River Summit Willow",
	},
	{
		why: "Common English, so that texts of environments that people bring are short.",
		said: "about also always an any are as ask away be because been begin being best big but by came change close come could day did do does each easy else end enough " +
			"even every few form full gave get give given go going good great had half hand hard he head her high him his how if in into just kind know last late " +
			"leave less let life little live long look lot low made main man many me mean might more move much my name never no nor now of off often old one open or order " +
			"our out over own part people point put ready real run say second seem send she show side since single so start state still stop " +
			"such take than their them there these they thing things this those three through time times today too top toward try turn two until us use very wait was " +
			"we well were what when where which while who why will within without word work world write year you able above along around " +
			"four five six seven eight nine zero left user assistant system task tasks object objects take put door key",
		words: "The It In If There This We Then So Now First What is are the to of and or",
		exact: []string{"'s", "'t", "'ll", "'ve"},
	},
}
