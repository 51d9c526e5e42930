package tokenizer

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"time"

	"github.com/nikolalohinski/gonja/v2/exec"
)

// Sizes that are charged: of an element of a list or dictionary, and of an element that the
// engine iterates over.
const (
	partBytes    = 64
	elementBytes = 128
)

// budget holds the output of one rendering and what the rendering may still use.
type budget struct {
	out   bytes.Buffer
	steps int       // statements and writes left
	bytes int       // bytes of values left
	until time.Time // when it ends
	spent error     // why the budget ended; stored here because the engine drops some errors
}

// budgetOf returns the budget of the rendering.
func budgetOf(e *exec.Evaluator) *budget {
	b, _ := e.Environment.Context.Get(budgetVariable)
	return b.(*budget)
}

func (b *budget) Write(p []byte) (int, error) { return b.write(&b.out, p, maxRendered) }

// write appends p to a buffer of at most most bytes.
func (b *budget) write(to *bytes.Buffer, p []byte, most int) (int, error) {
	if err := b.step(); err != nil {
		return 0, err
	}
	if to.Len()+len(p) > most {
		return 0, b.over(fmt.Errorf("writes more than %d bytes", most))
	}
	return to.Write(p)
}

func (b *budget) over(err error) error {
	b.spent = err
	return err
}

// step charges one statement or write.
func (b *budget) step() error {
	b.steps--
	if b.steps < 0 && b.spent == nil {
		return b.over(fmt.Errorf("executes more than %d statements", maxSteps))
	}
	return b.late()
}

func (b *budget) late() error {
	if b.spent == nil && time.Now().After(b.until) {
		return b.over(fmt.Errorf("runs longer than %v", maxRenderTime))
	}
	return b.spent
}

// charge charges times · size bytes.
func (b *budget) charge(times, size int) error {
	if err := b.late(); err != nil {
		return err
	}
	if size > b.bytes/times {
		return b.over(fmt.Errorf("makes more than %d bytes of values", maxMade))
	}
	b.bytes -= times * size
	return nil
}

// fits returns an error if a value would be too large, before it is made.
func (b *budget) fits(size int) error {
	if size > maxValue {
		return b.over(fmt.Errorf("a value is larger than %d bytes", maxValue))
	}
	return b.charge(1, size)
}

// made charges a value that was made.
func (b *budget) made(v *exec.Value) error {
	size, err := b.size(v)
	if err != nil {
		return err
	}
	return b.fits(size)
}

// text charges the size of a value written as text. Values that are text cost nothing,
// because they exist already.
func (b *budget) text(v *exec.Value) error {
	if v.IsString() {
		return b.late()
	}
	size, err := b.size(v)
	if err != nil {
		return err
	}
	return b.charge(1, size)
}

// looped charges an iteration over a value.
func (b *budget) looped(v *exec.Value) error { return b.charge(elementBytes, elements(v)) }

// size estimates the bytes of a value written as text, or of its parts if they are more.
// Values other than namespaces never change once made, so that none contains itself and a
// measured size stays correct.
func (b *budget) size(v *exec.Value) (int, error) {
	left := b.bytes
	if err := measure(v.Val, &left, 0); err != nil {
		return 0, b.over(err)
	}
	return b.bytes - left, nil
}

// maxParts is the maximum nesting of values.
const maxParts = 64

func measure(v reflect.Value, left *int, depth int) error {
	if depth > maxParts {
		return fmt.Errorf("a value nests more than %d levels", maxParts)
	}
	spend := func(n int) error {
		if *left -= n; *left < 0 {
			return fmt.Errorf("makes more than %d bytes of values", maxMade)
		}
		return nil
	}
	if !v.IsValid() {
		return spend(partBytes)
	}
	if v.CanInterface() {
		switch x := v.Interface().(type) {
		case *exec.Value:
			if x == nil {
				return nil
			}
			return measure(x.Val, left, depth)
		case namespace:
			if depth > 0 {
				return errors.New("a namespace is kept in another value")
			}
		case *exec.Dict:
			v = reflect.ValueOf(x.Pairs)
		case *exec.Pair:
			v = reflect.ValueOf([]*exec.Value{x.Key, x.Value})
		case *big.Int:
			return spend(x.BitLen())
		}
	}
	switch v.Kind() {
	case reflect.String:
		return spend(v.Len())
	case reflect.Interface:
		return measure(v.Elem(), left, depth)
	case reflect.Slice, reflect.Array:
		if err := spend(partBytes * v.Len()); err != nil {
			return err
		}
		if kind := v.Type().Elem().Kind(); kind == reflect.Int {
			return nil
		}
		for i := range v.Len() {
			if err := measure(v.Index(i), left, depth+1); err != nil {
				return err
			}
		}
		return nil
	case reflect.Map:
		if err := spend(partBytes * v.Len()); err != nil {
			return err
		}
		for it := v.MapRange(); it.Next(); {
			if err := measure(it.Key(), left, depth+1); err != nil {
				return err
			}
			if err := measure(it.Value(), left, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return spend(partBytes)
}

// elements is the number of elements of an iteration over a value; for text, its bytes.
func elements(v *exec.Value) int {
	if dict, ok := v.Interface().(*exec.Dict); ok {
		return len(dict.Pairs)
	}
	switch v.Val.Kind() {
	case reflect.String, reflect.Slice, reflect.Array, reflect.Map:
		return v.Val.Len()
	}
	return 0
}
