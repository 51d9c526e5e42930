package study

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// panel is one metric's part of a plot.
type panel struct {
	title  string
	column func(Record) []float64
	// log says that its scale is logarithmic.
	log bool
	// share says that it is one, from 0 to 1.
	share bool
}

func metric(name string) func(Record) []float64 {
	return func(r Record) []float64 { return r.column(name) }
}

// panels are what a plot shows, row by row: [rows][columns].
var panels = [][]panel{
	{
		{title: "share of the high arm", column: metric(Success), share: true},
		{title: "mean reward, without the chance of payouts", column: Record.expected},
		{title: "in-group reward deviation", column: metric(Deviation)},
	},
	{
		{title: "entropy (nats)", column: metric(Entropy)},
		{title: "gradient norm (log scale)", column: metric(GradNorm), log: true},
		{title: "response length (tokens)", column: metric(Length)},
	},
}

// colours are the algorithms' colours by Okabe and Ito, which colour-blind readers can
// distinguish.
var colours = []color.NRGBA{
	{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
	{R: 0x00, G: 0x72, B: 0xb2, A: 0xff},
	{R: 0x00, G: 0x9e, B: 0x73, A: 0xff},
	{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
}

const (
	panelWidth  = 9 * vg.Centimeter
	panelHeight = 6 * vg.Centimeter
	// legendHeight is the height of the strip above the panels.
	legendHeight = 8 * vg.Millimeter
	lineWidth    = vg.Length(1.2)
	// bandAlpha is how much of the ground an interval covers.
	bandAlpha = 0x30
	// least and most bound what is drawn: least on a logarithmic scale alone.
	least, most = 1e-9, 1e9
)

// Plot draws a task as SVG: a panel per metric with a line per algorithm, the mean over
// its seeds with the 95 % interval as a band. The same records give the same bytes.
func Plot(records []Record, task string) ([]byte, error) {
	var plots [][]*plot.Plot
	for _, row := range panels {
		var out []*plot.Plot
		for _, p := range row {
			drawn, err := p.draw(records, task)
			if err != nil {
				return nil, fmt.Errorf("plot %s, %s: %w", task, p.title, err)
			}
			out = append(out, drawn)
		}
		plots = append(plots, out)
	}
	columns := len(panels[0])
	canvas := vgsvg.New(vg.Length(columns)*panelWidth, vg.Length(len(panels))*panelHeight+legendHeight)
	tiles := draw.Tiles{Rows: len(panels), Cols: columns, PadX: 4 * vg.Millimeter, PadY: 4 * vg.Millimeter,
		PadTop: 2 * vg.Millimeter, PadBottom: 2 * vg.Millimeter, PadLeft: 2 * vg.Millimeter, PadRight: 2 * vg.Millimeter}
	ground := draw.New(canvas)
	ground.SetColor(color.White)
	ground.Fill(ground.Rectangle.Path())
	drawLegend(draw.Crop(ground, 0, 0, vg.Length(len(panels))*panelHeight, 0))
	for i, row := range plot.Align(plots, tiles, draw.Crop(ground, 0, 0, 0, -legendHeight)) {
		for j, at := range row {
			plots[i][j].Draw(at)
		}
	}
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("plot %s: %w", task, err)
	}
	return b.Bytes(), nil
}

// drawLegend draws the legend from left to right.
func drawLegend(at draw.Canvas) {
	width := at.Size().X / vg.Length(len(Algorithms))
	for n, a := range Algorithms {
		line := &plotter.Line{LineStyle: draw.LineStyle{Color: colours[n], Width: lineWidth}}
		legend := plot.NewLegend()
		legend.Top, legend.Left, legend.YOffs = true, true, -2*vg.Millimeter
		legend.XOffs = 10 * vg.Millimeter
		legend.Add(a.Title, line)
		legend.Draw(draw.Crop(at, vg.Length(n)*width, -vg.Length(len(Algorithms)-1-n)*width, 0, 0))
	}
}

// ticks are at whole iterations: every one, 5, 10, 50 … so that they are few.
func ticks(low, high float64) []plot.Tick {
	step := 1.0
	for n := 0; (high-low)/step > 8; n++ {
		step *= []float64{5, 2}[n%2] // 5, 10, 50, 100 …
	}
	var out []plot.Tick
	for x := math.Ceil(low/step) * step; x <= high; x += step {
		out = append(out, plot.Tick{Value: x, Label: strconv.FormatFloat(x, 'f', 0, 64)})
	}
	return out
}

func (p panel) draw(records []Record, task string) (*plot.Plot, error) {
	out := plot.New()
	out.Title.Text = p.title
	out.X.Label.Text = "iteration"
	out.X.Tick.Marker = plot.TickerFunc(ticks)
	out.Add(plotter.NewGrid())
	for n, a := range Algorithms {
		for _, s := range Settings() {
			if s.Algorithm.Name != a.Name || s.Task() != task {
				continue
			}
			if err := p.add(out, curveOf(records, s.Name(), p.column), colours[n]); err != nil {
				return nil, err
			}
		}
	}
	if p.share {
		out.Y.Min, out.Y.Max = 0, 1
	}
	if p.log && out.Y.Min > 0 && !math.IsInf(out.Y.Min, 1) {
		if out.Y.Min == out.Y.Max {
			out.Y.Min, out.Y.Max = out.Y.Min/2, out.Y.Max*2 // a scale needs a range
		}
		out.Y.Scale = plot.LogScale{}
		out.Y.Tick.Marker = plot.LogTicks{Prec: -1}
	}
	return out, nil
}

// add draws a curve. Iterations without a value that can be drawn are omitted.
func (p panel) add(to *plot.Plot, c Curve, colour color.NRGBA) error {
	var line, low, high plotter.XYs
	for n, i := range c {
		mean := i.Mean
		if i.N == 0 || math.Abs(mean) > most || p.log && mean < least {
			continue
		}
		x := float64(n)
		line = append(line, plotter.XY{X: x, Y: mean})
		if math.IsNaN(i.Low) {
			continue
		}
		bottom := max(i.Low, -most)
		if p.log {
			bottom = max(bottom, mean/10) // an interval around a mean may pass zero
		}
		low = append(low, plotter.XY{X: x, Y: bottom})
		high = append(high, plotter.XY{X: x, Y: min(i.High, most)})
	}
	if len(line) == 0 {
		return nil
	}
	if len(low) > 1 {
		for n := len(high) - 1; n >= 0; n-- {
			low = append(low, high[n])
		}
		band, err := plotter.NewPolygon(low)
		if err != nil {
			return fmt.Errorf("draw an interval: %w", err)
		}
		band.Color = color.NRGBA{R: colour.R, G: colour.G, B: colour.B, A: bandAlpha}
		band.LineStyle.Width = 0
		to.Add(band)
	}
	drawn, err := plotter.NewLine(line)
	if err != nil {
		return fmt.Errorf("draw a curve: %w", err)
	}
	drawn.Color, drawn.Width = colour, lineWidth
	to.Add(drawn)
	return nil
}
