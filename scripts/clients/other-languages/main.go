// What the SDKs for Go see: a line for each thing that is tried.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/anthropics/anthropic-sdk-go"
	messages "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

var ctx = context.Background()

const question = "What does note.txt say?"

func main() {
	base := os.Getenv("BASE")
	chat(openai.NewClient(option.WithBaseURL(base+"/v1"), option.WithMaxRetries(0)))
	ofMessages(anthropic.NewClient(messages.WithBaseURL(base), messages.WithMaxRetries(0)))
}

func chat(client openai.Client) {
	schema := map[string]any{"type": "object", "properties": map[string]any{"q": map[string]any{"type": "string"}}}
	ask := openai.ChatCompletionNewParams{Model: "large", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(question)}}
	answer, err := client.Chat.Completions.New(ctx, ask)
	must(err)
	fmt.Println("chat:", answer.Choices[0].Message.Content, answer.Usage.TotalTokens)

	streamed := ask
	streamed.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	stream := client.Chat.Completions.NewStreaming(ctx, streamed)
	whole := openai.ChatCompletionAccumulator{}
	for stream.Next() {
		whole.AddChunk(stream.Current())
	}
	must(stream.Err())
	fmt.Println("chat stream:", whole.Choices[0].Message.Content, whole.Usage.TotalTokens)

	ask.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "look", Parameters: schema})}
	first, err := client.Chat.Completions.New(ctx, ask)
	must(err)
	call := first.Choices[0].Message.ToolCalls[0]
	fmt.Println("chat tool:", call.Function.Name, call.Function.Arguments)
	ask.Messages = append(ask.Messages, first.Choices[0].Message.ToParam(), openai.ToolMessage("forty-two", call.ID))
	answer, err = client.Chat.Completions.New(ctx, ask)
	must(err)
	fmt.Println("chat loop:", answer.Choices[0].Message.Content)

	look := []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{Name: "look", Parameters: schema, Strict: openai.Bool(false)}}}
	given := responses.ResponseNewParams{Model: "large", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(question)}, Tools: look}
	one, err := client.Responses.New(ctx, given)
	must(err)
	var due responses.ResponseOutputItemUnion
	for _, item := range one.Output {
		if item.Type == "function_call" {
			due = item
		}
	}
	fmt.Println("responses tool:", due.Name, due.Arguments.OfString)
	back := responses.ResponseInputItemParamOfFunctionCallOutput("forty-two")
	back.OfFunctionCallOutput.CallID = openai.String(due.CallID)
	given.PreviousResponseID = openai.String(one.ID)
	given.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{back}}
	events := client.Responses.NewStreaming(ctx, given)
	text := ""
	for events.Next() {
		if event := events.Current(); event.Type == "response.output_text.delta" {
			text += event.Delta
		}
	}
	must(events.Err())
	fmt.Println("responses stream:", text)

	vector, err := client.Embeddings.New(ctx, openai.EmbeddingNewParams{Model: "text-embedding-3-small", Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("forty-two")}})
	must(err)
	fmt.Println("embeddings:", vector.Data[0].Embedding)
	_, err = client.Files.Get(ctx, "none")
	var failed *openai.Error
	fmt.Println("no such file:", errors.As(err, &failed) && failed.StatusCode == 404)
}

func ofMessages(client anthropic.Client) {
	ask := anthropic.MessageNewParams{Model: "large", MaxTokens: 200, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(question))}}
	answer, err := client.Messages.New(ctx, ask)
	must(err)
	fmt.Println("messages:", answer.Content[0].Text, answer.Usage.OutputTokens)

	stream := client.Messages.NewStreaming(ctx, ask)
	whole := anthropic.Message{}
	for stream.Next() {
		must(whole.Accumulate(stream.Current()))
	}
	must(stream.Err())
	fmt.Println("messages stream:", whole.Content[0].Text, whole.Usage.OutputTokens)

	ask.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: "look", InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{"q": map[string]any{"type": "string"}}}}}}
	first, err := client.Messages.New(ctx, ask)
	must(err)
	use := first.Content[len(first.Content)-1]
	fmt.Println("messages tool:", use.Name, string(use.Input))
	ask.Messages = append(ask.Messages, first.ToParam(), anthropic.NewUserMessage(anthropic.NewToolResultBlock(use.ID, "forty-two", false)))
	answer, err = client.Messages.New(ctx, ask)
	must(err)
	fmt.Println("messages loop:", answer.Content[0].Text)

	count, err := client.Messages.CountTokens(ctx, anthropic.MessageCountTokensParams{Model: "large", Messages: ask.Messages})
	must(err)
	fmt.Println("count:", count.InputTokens)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
