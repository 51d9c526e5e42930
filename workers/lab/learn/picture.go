package learn

import (
	"bytes"
	"fmt"
	"image/color"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/reprise-rl/reprise/workers/lab/twins"
)

// Colours of the picture, which colour-blind readers can tell apart (Okabe and Ito).
var (
	undisturbedColour = color.NRGBA{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff}
	killedColour      = color.NRGBA{A: 0xff}
	killColour        = color.NRGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff}
)

const (
	pictureWidth  = 20 * vg.Centimeter
	pictureHeight = 9 * vg.Centimeter
	// killTop is where the mark of a kill ends, and labels are beside it; successes reach 1.
	killTop, pictureTop = 1.06, 1.45
	// apart is how far apart the marks of one iteration's kills are, as a share of the width.
	apart = 0.025
)

// Picture draws both curves of success as SVG: the undisturbed run as a broad line, the killed run
// as a thin one on it, and a mark with the activity's name for each kill. The same curves give the
// same bytes.
func (k Killed) Picture() ([]byte, error) {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s, killed %d times: %s", k.Setting, len(k.Kills), k.verdict())
	p.X.Label.Text, p.Y.Label.Text = "iteration", "success"
	p.Y.Min, p.Y.Max = 0, pictureTop
	last := float64(max(len(k.Undisturbed), len(k.Killed), 2) - 1)
	p.X.Min, p.X.Max = 0, 1.03*last // the label of the last iteration is not cut
	p.X.Tick.Marker = plot.TickerFunc(wholeTicks)
	p.Y.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0 %"}, {Value: 0.5, Label: "50 %"}, {Value: 1, Label: "100 %"}}
	p.Add(plotter.NewGrid())
	p.Legend.Left = true
	p.Legend.YOffs = vg.Points(2)
	if err := addCurve(p, k.Undisturbed, undisturbedColour, vg.Points(5), "undisturbed"); err != nil {
		return nil, err
	}
	if err := addCurve(p, k.Killed, killedColour, vg.Points(1), "killed"); err != nil {
		return nil, err
	}
	labels := plotter.XYLabels{}
	at := map[int]int{} // kills of an iteration so far
	for _, kill := range k.Kills {
		x := float64(kill.Iteration) + last*apart*float64(at[kill.Iteration])
		at[kill.Iteration]++
		line, err := plotter.NewLine(plotter.XYs{{X: x, Y: 0}, {X: x, Y: killTop}})
		if err != nil {
			return nil, fmt.Errorf("draw a kill: %w", err)
		}
		line.Color, line.Width, line.Dashes = killColour, vg.Points(1), []vg.Length{vg.Points(3), vg.Points(2)}
		p.Add(line)
		labels.XYs = append(labels.XYs, plotter.XY{X: x, Y: killTop + 0.02})
		labels.Labels = append(labels.Labels, "kill -9 in "+kill.Activity)
	}
	if len(labels.Labels) > 0 {
		named, err := plotter.NewLabels(labels)
		if err != nil {
			return nil, fmt.Errorf("draw the kills' names: %w", err)
		}
		for i := range named.TextStyle {
			named.TextStyle[i].Color = killColour
			named.TextStyle[i].Font.Size = font.Length(7)
			named.TextStyle[i].Rotation = 0.9
			named.TextStyle[i].XAlign, named.TextStyle[i].YAlign = draw.XLeft, draw.YCenter
		}
		p.Add(named)
	}
	canvas := vgsvg.New(pictureWidth, pictureHeight)
	ground := draw.New(canvas)
	ground.SetColor(color.White)
	ground.Fill(ground.Rectangle.Path())
	p.Draw(ground)
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("draw %s: %w", k.Setting, err)
	}
	return b.Bytes(), nil
}

// String lists the kills with their witnesses, and says whether the states are equal.
func (k Killed) String() string {
	var b strings.Builder
	for n, kill := range k.Kills {
		fmt.Fprintf(&b, "kill %d: in %s (%s) of iteration %d; witness in history: %s\n", n+1, kill.Activity, kill.Phase, kill.Iteration, kill.Witness)
	}
	fmt.Fprintf(&b, "%s, %d iterations undisturbed and killed %d times: %s", k.Setting, len(k.Undisturbed), len(k.Kills), k.verdict())
	return b.String()
}

// verdict says whether the states are equal.
func (k Killed) verdict() string {
	if k.Equal {
		return fmt.Sprintf("all %d state fingerprints equal", len(k.Undisturbed))
	}
	return "STATE FINGERPRINTS DIFFER"
}

func addCurve(p *plot.Plot, of []twins.Committed, colour color.NRGBA, width vg.Length, name string) error {
	var points plotter.XYs
	for i, c := range of {
		points = append(points, plotter.XY{X: float64(i), Y: c.Success})
	}
	if len(points) == 0 {
		return nil
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return fmt.Errorf("draw a curve: %w", err)
	}
	line.Color, line.Width = colour, width
	p.Add(line)
	p.Legend.Add(name, line)
	return nil
}

// wholeTicks are at every so many whole iterations that they are at most twelve.
func wholeTicks(low, high float64) []plot.Tick {
	step := 1
	for steps := []int{2, 5, 10, 20, 50, 100, 500, 5000}; (high-low)/float64(step) > 11 && len(steps) > 0; steps = steps[1:] {
		step = steps[0]
	}
	var out []plot.Tick
	for x := 0; float64(x) <= high; x += step {
		out = append(out, plot.Tick{Value: float64(x), Label: strconv.Itoa(x)})
	}
	return out
}
