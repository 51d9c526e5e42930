package model

import (
	"context"
	"fmt"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// KernelSizes are the sizes at which MeasureKernels works.
type KernelSizes struct {
	// Side is the rows and columns of the matrices that are multiplied.
	Side int
	// Vocabulary, Hidden and Tokens are an embedding's table and the positions whose gradients
	// are summed into it.
	Vocabulary, Hidden, Tokens int
	// Repeats is how often each kernel is timed; the fastest counts.
	Repeats int
}

// Kernel is the speed of an operation on which a device's speed depends.
type Kernel struct {
	Name string
	// Seconds is the time of one operation.
	Seconds float64
	// Operations is the floating-point operations of it; 0 where bytes are what counts.
	Operations float64
}

// chain is how many products follow each other in one program, so that starting it and reading
// the result do not count.
const chain = 10

// MeasureKernels times matrix products in bfloat16 and in float32, each as the project computes
// (HIGHEST precision, so that nothing is rounded to tf32) and with the precision left to the
// compiler (on CUDA alone), and the sum of rows into an embedding's table, which has to be deterministic.
func (d *Device) MeasureKernels(ctx context.Context, sizes KernelSizes) ([]Kernel, error) {
	n := sizes.Side
	product := func(dtype dtypes.DType) builder {
		return func(in *inputs) []*graph.Node {
			a := in.next(dtypes.Float32, n, n)
			x, y := graph.ConvertDType(a, dtype), graph.ConvertDType(a, dtype)
			for range chain {
				x = graph.MulScalar(graph.Dot(x, y).General([]int{1}, nil, []int{0}, nil), 1/float64(n))
			}
			return []*graph.Node{graph.ReduceAllMax(graph.ConvertDType(x, dtypes.Float32))}
		}
	}
	scatter := func(in *inputs) []*graph.Node {
		rows, ids := in.next(dtypes.Float32, sizes.Tokens, sizes.Hidden), in.next(dtypes.Int32, sizes.Tokens, 1)
		table := graph.Zeros(rows.Graph(), shapes.Make(dtypes.Float32, sizes.Vocabulary, sizes.Hidden))
		return []*graph.Node{graph.ReduceAllMax(graph.ScatterSum(table, ids, rows, false, false))}
	}
	ids := make([]int32, sizes.Tokens)
	for i := range ids {
		ids[i] = int32(i % max(1, sizes.Tokens/4) % sizes.Vocabulary) // each four times
	}
	flops := 2 * float64(n) * float64(n) * float64(n)
	var out []Kernel
	for _, k := range []struct {
		name       string
		build      builder
		tf32       bool // leaves the precision to the compiler
		times      int
		operations float64
		ids        []int32
		floats     [2]int
	}{
		{"bfloat16 product, HIGHEST", product(dtypes.BFloat16), false, chain, flops, nil, [2]int{n, n}},
		{"bfloat16 product, DEFAULT", product(dtypes.BFloat16), true, chain, flops, nil, [2]int{n, n}},
		{"float32 product, HIGHEST", product(dtypes.Float32), false, chain, flops, nil, [2]int{n, n}},
		{"float32 product, DEFAULT (tf32)", product(dtypes.Float32), true, chain, flops, nil, [2]int{n, n}},
		{"sum into the embedding's table", scatter, false, 1, 0, ids, [2]int{sizes.Tokens, sizes.Hidden}},
	} {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if k.tf32 && d.memory == (MemorySettings{}) {
			continue // a CPU has no other precision
		}
		seconds, err := d.timeKernel(k.name, k.build, k.tf32, k.floats, k.ids, sizes.Repeats)
		if err != nil {
			return out, fmt.Errorf("%s: %w", k.name, err)
		}
		out = append(out, Kernel{k.name, seconds / float64(k.times), k.operations})
	}
	return out, nil
}

// timeKernel is the least time of a program whose inputs are a matrix and, where there are
// some, ids, and whose output is one number.
func (d *Device) timeKernel(name string, build builder, tf32 bool, dims [2]int, ids []int32, repeats int) (float64, error) {
	d.run.Lock()
	defer d.run.Unlock()
	before := d.backend.DotGeneralUseTF32
	d.backend.DotGeneralUseTF32 = tf32
	defer func() { d.backend.DotGeneralUseTF32 = before }()

	values := make([]float32, dims[0]*dims[1])
	for i := range values {
		values[i] = float32(i%251)/251 - 0.5
	}
	matrix, err := upload(d, 0, values, dims[0], dims[1])
	if err != nil {
		return 0, err
	}
	given := []compute.Buffer{matrix}
	defer func() { free(given) }()
	if ids != nil {
		b, err := upload(d, 0, ids, len(ids), 1)
		if err != nil {
			return 0, err
		}
		given = append(given, b)
	}
	p := &program{name: name, device: d, build: build}
	defer p.finalize()
	least := 0.0
	for i := range repeats + 1 { // the first compiles and warms up
		begin := time.Now()
		out, err := p.call(given...)
		if err != nil {
			return 0, err
		}
		_, err = download[float32](out[0], 1)
		free(out)
		if err != nil {
			return 0, err
		}
		if s := time.Since(begin).Seconds(); i > 0 && (least == 0 || s < least) {
			least = s
		}
	}
	return least, nil
}
