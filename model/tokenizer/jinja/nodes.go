package jinja

// expression is a node that has a value.
type expression interface {
	eval(r *run, s *scope) any
}

// statement is a node that writes text or changes a scope.
type statement interface {
	exec(r *run, s *scope, out *output) signal
}

// signal says how a statement ended.
type signal int

const (
	goesOn signal = iota
	breaks
	continues
)

// Expressions. Each line is the one on which the node begins.
type (
	constant struct{ value any }

	variable struct {
		name string
		line int
	}

	// display is a list or a tuple that is written out.
	display struct {
		items []expression
		tuple bool
	}

	dictDisplay struct {
		keys, values []expression
		line         int
	}

	// attribute is value.name; item is value[index].
	attribute struct {
		value expression
		name  string
		line  int
	}

	item struct {
		value, index expression
		line         int
	}

	// slice is value[from:to:step], where each may be nil.
	slice struct {
		value, from, to, step expression
		line                  int
	}

	call struct {
		callee expression
		arguments
		line int
	}

	// filter is value|name(…). The value is nil in a filter block.
	filter struct {
		value expression
		name  string
		arguments
		line int
	}

	test struct {
		value expression
		name  string
		arguments
		line int
	}

	// binary has an operator of arithmetic.
	binary struct {
		operator    string
		left, right expression
		line        int
	}

	unary struct {
		operator string // "-", "+", "not"
		value    expression
		line     int
	}

	// logical is "and" or "or".
	logical struct {
		or          bool
		left, right expression
	}

	// comparison is a chain: first operators[0] operands[0] operators[1] …
	comparison struct {
		first     expression
		operators []string
		operands  []expression
		line      int
	}

	concatenation struct {
		parts []expression
		line  int
	}

	// conditional is value if condition else other; other may be nil.
	conditional struct {
		condition, value, other expression
		line                    int
	}
)

// arguments are those of a call, a filter or a test.
type arguments struct {
	positional []expression
	names      []string // of the keyword arguments
	keywords   []expression
	star       expression // *star
	stars      expression // **stars
}

// target is what a value is assigned to: a name, a field of a namespace, or several of them.
type target struct {
	name  string
	field string   // of the namespace called name
	parts []target // of a tuple, else nil
	line  int
}

// Statements.
type (
	text struct{ text string }

	print struct {
		values []expression
		line   int
	}

	set struct {
		target target
		value  expression
		line   int
	}

	// setBlock assigns what its body writes, through filters.
	setBlock struct {
		target  target
		filters []*filter
		body    []statement
		frame   *frame
		line    int
	}

	branch struct {
		condition expression
		body      []statement
	}

	ifs struct {
		branches []branch
		other    []statement
	}

	loop struct {
		target    target
		over      expression
		condition expression // nil without
		recursive bool
		body      []statement
		other     []statement // else
		line      int

		frame, otherFrame *frame
	}

	jump struct{ signal signal }

	// define makes a macro.
	define struct {
		macro *macroNode
	}

	// callBlock calls with a caller.
	callBlock struct {
		call  *call
		macro *macroNode
	}

	filterBlock struct {
		filters []*filter
		body    []statement
		frame   *frame
	}

	// with opens a scope with variables.
	with struct {
		targets []target
		values  []expression
		body    []statement
		frame   *frame
	}

	// generation marks what an assistant says. It has a scope of its own.
	generation struct {
		body  []statement
		frame *frame
	}
)

// macroNode is a macro, or the body of a call block, whose name is "".
type macroNode struct {
	name       string
	parameters []string
	defaults   []expression // of the last parameters
	body       []statement
	frame      *frame
	line       int

	// Which special variables the body reads.
	caller, varargs, kwargs bool
}
