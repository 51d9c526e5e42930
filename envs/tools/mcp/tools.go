package mcp

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reprise-rl/reprise/envs/calls"
	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// Description is what policies are told about a server's tools. A spec that pins it says what a run began with.
type Description struct {
	// Server is the name and the version that the server tells of itself, as "memory 1.2.0".
	Server string `json:"server"`
	// Tools are the allowed ones, in the order in which they were allowed.
	Tools []chat.Tool `json:"tools"`
}

// JSON is the description in one canonical form: without blanks, the keys of schemas in the order of their bytes.
func (d Description) JSON() ([]byte, error) {
	tools := make([]chat.Tool, len(d.Tools))
	for i, t := range d.Tools {
		var err error
		if t.Parameters, err = calls.Canonical(t.Parameters); err != nil {
			return nil, fmt.Errorf("write the description of the tool %s: its parameters: %w", strict.Quote(t.Name), err)
		}
		tools[i] = t
	}
	d.Tools = tools
	return calls.JSON(d)
}

// Drift says what differs in now from d, which was pinned: a sentence for each tool, in the order of d, and one for the
// server's own name. It is empty if nothing does.
func (d Description) Drift(now Description) ([]string, error) {
	var out []string
	for _, was := range d.Tools {
		is, ok := find(now.Tools, was.Name)
		if !ok {
			out = append(out, fmt.Sprintf("the tool %s is gone", strict.Quote(was.Name)))
			continue
		}
		before, err := calls.Canonical(was.Parameters)
		if err != nil {
			return nil, fmt.Errorf("read the pinned parameters of the tool %s: %w", strict.Quote(was.Name), err)
		}
		after, err := calls.Canonical(is.Parameters)
		if err != nil {
			return nil, fmt.Errorf("read the parameters of the tool %s: %w", strict.Quote(was.Name), err)
		}
		var parts []string
		if was.Description != is.Description {
			parts = append(parts, "description")
		}
		if string(before) != string(after) {
			parts = append(parts, "parameters")
		}
		if len(parts) > 0 {
			out = append(out, fmt.Sprintf("the tool %s has another %s", strict.Quote(was.Name), strings.Join(parts, " and other ")))
		}
	}
	for _, is := range now.Tools {
		if _, ok := find(d.Tools, is.Name); !ok {
			out = append(out, fmt.Sprintf("the tool %s is new", strict.Quote(is.Name)))
		}
	}
	if d.Server != now.Server {
		out = append(out, fmt.Sprintf("the server was %s and is %s", strict.Quote(d.Server), strict.Quote(now.Server)))
	}
	return out, nil
}

func find(tools []chat.Tool, name string) (chat.Tool, bool) {
	for _, t := range tools {
		if t.Name == name {
			return t, true
		}
	}
	return chat.Tool{}, false
}

// listing is what a server lists: the tools that a policy can have, and why it cannot have the others, by their names.
type listing struct {
	server string
	tools  []chat.Tool
	others map[string]string
}

// Tools are the server's tools that a policy can have, in the server's order. Left out are those with another name than 1
// to 64 letters, digits, dashes and underscores, those of more than MaxTool bytes, those that stand in the list before, and
// those whose arguments are no object. Errors are of the kinds of this package; a list of more than MaxTools tools is ErrAnswer.
func (c *Client) Tools(ctx context.Context) ([]chat.Tool, error) {
	l, err := c.list(ctx)
	return l.tools, err
}

// Describe is what policies are told if they are allowed these tools. A tool that the server has not, or that a policy
// cannot have, is ErrUnknown: the error names it, and the nearest that there is. Other errors are those of
// Tools.
func (c *Client) Describe(ctx context.Context, allowed []string) (Description, error) {
	l, err := c.list(ctx)
	if err != nil {
		return Description{}, err
	}
	d := Description{Server: l.server, Tools: []chat.Tool{}}
	for _, name := range allowed {
		t, ok := find(l.tools, name)
		if !ok {
			return Description{}, fmt.Errorf("MCP server %s: %w %s, %s", c.server.Name, ErrUnknown, strict.Quote(name), l.missing(name))
		}
		d.Tools = append(d.Tools, t)
	}
	return d, nil
}

// shownTools is how many names an error lists.
const shownTools = 32

// missing says why a tool is not there.
func (l listing) missing(name string) string {
	if why, ok := l.others[name]; ok {
		return "which a policy cannot have: " + why
	}
	if len(l.tools) == 0 {
		return "it has no tools"
	}
	names := make([]string, len(l.tools))
	for i, t := range l.tools {
		names[i] = t.Name
	}
	text := "it has: " + strings.Join(names[:min(len(names), shownTools)], ", ")
	if more := len(names) - shownTools; more > 0 {
		text += fmt.Sprintf(" and %d others", more)
	}
	if hint := strict.DidYouMean(name, names); hint != "" {
		text += "; " + hint
	}
	return text
}

// list asks for the list, page after page. What a call changes in it, by a tool that comes or goes, is seen the next time.
func (c *Client) list(ctx context.Context) (listing, error) {
	var l listing
	err := c.with(ctx, "", func(ctx context.Context, s *session) error {
		l = listing{server: s.name(), others: map[string]string{}}
		cursor, seen := "", 0
		for range MaxTools {
			var page *sdk.ListToolsResult
			err := s.ask(ctx, func(ctx context.Context) (err error) {
				page, err = s.client.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
				return err
			})
			if err != nil {
				return err
			}
			if seen += len(page.Tools); seen > MaxTools {
				return s.wrong(fmt.Errorf("%w: it lists more than %d tools", ErrAnswer, MaxTools))
			}
			for _, t := range page.Tools {
				l.add(t)
			}
			if page.NextCursor == "" {
				return nil
			}
			if page.NextCursor == cursor {
				return s.wrong(fmt.Errorf("%w: its list of tools continues with the page that it just gave", ErrAnswer))
			}
			cursor = page.NextCursor
		}
		return s.wrong(fmt.Errorf("%w: its list of tools has more than %d pages", ErrAnswer, MaxTools))
	})
	return l, err
}

var validTool = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// add puts a tool into the listing.
func (l *listing) add(t *sdk.Tool) {
	name := t.Name
	if len(name) > MaxTool {
		return // nobody names it
	}
	if !validTool.MatchString(name) {
		l.others[name] = "its name has other characters than 1 to 64 letters, digits, dashes and underscores"
		return
	}
	if _, again := find(l.tools, name); again {
		return // the first counts; what is called is named only
	}
	schema, err := calls.JSON(t.InputSchema)
	if err != nil {
		l.others[name] = "the schema of its arguments: " + err.Error()
		return
	}
	if size := len(name) + len(t.Description) + len(schema); size > MaxTool {
		l.others[name] = fmt.Sprintf("name, description and schema have %d bytes, at most are %d", size, MaxTool)
		return
	}
	if schema, err = calls.Canonical(schema); err != nil {
		l.others[name] = "the schema of its arguments: " + err.Error()
		return
	}
	if object, _ := t.InputSchema.(map[string]any); object["type"] != "object" {
		l.others[name] = "its arguments are no object"
		return
	}
	l.tools = append(l.tools, chat.Tool{Name: name, Description: t.Description, Parameters: schema})
}
