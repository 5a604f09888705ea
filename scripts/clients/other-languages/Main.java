import com.anthropic.client.okhttp.AnthropicOkHttpClient;
import com.anthropic.helpers.MessageAccumulator;
import com.anthropic.models.messages.MessageCreateParams;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.helpers.ChatCompletionAccumulator;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import com.openai.models.embeddings.EmbeddingCreateParams;
import com.openai.models.responses.ResponseCreateParams;
import dev.langchain4j.model.anthropic.AnthropicChatModel;
import dev.langchain4j.model.chat.response.ChatResponse;
import dev.langchain4j.model.chat.response.StreamingChatResponseHandler;
import dev.langchain4j.model.openai.OpenAiChatModel;
import dev.langchain4j.model.openai.OpenAiStreamingChatModel;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** What the SDKs for Java see, and LangChain4j over the HTTP client of Java itself, which asks for HTTP/2 first. A line for each thing that is tried. */
public class Main {
  public record Form(String answer) {}

  static final String QUESTION = "What does note.txt say?";

  public static void main(String[] args) {
    String base = System.getenv("BASE");
    try {
      openai(base);
      anthropic(base);
      langchain(base);
      System.exit(0);
    } catch (Throwable error) {
      // The clients' threads would go on.
      error.printStackTrace();
      System.exit(1);
    }
  }

  static void openai(String base) {
    var client = OpenAIOkHttpClient.builder().baseUrl(base + "/v1").apiKey("sk-test").maxRetries(0).build();
    var ask = ChatCompletionCreateParams.builder().model("large").addUserMessage(QUESTION).build();
    say("chat", client.chat().completions().create(ask).choices().get(0).message().content().get());
    var whole = ChatCompletionAccumulator.create();
    try (var stream = client.chat().completions().createStreaming(ask)) {
      stream.stream().forEach(whole::accumulate);
    }
    say("chat stream", whole.chatCompletion().choices().get(0).message().content().get());
    var formed = ask.toBuilder().responseFormat(Form.class).build();
    say("chat form", client.chat().completions().create(formed).choices().get(0).message().content().get());
    var given = ResponseCreateParams.builder().model("large").input(QUESTION).build();
    var text = new StringBuilder();
    try (var stream = client.responses().createStreaming(given)) {
      stream.stream().forEach(event -> event.outputTextDelta().ifPresent(delta -> text.append(delta.delta())));
    }
    say("responses stream", text);
    var embedding = EmbeddingCreateParams.builder().model("text-embedding-3-small").input("forty-two").build();
    say("embeddings", client.embeddings().create(embedding).data().get(0).embedding());
  }

  static void anthropic(String base) {
    var client = AnthropicOkHttpClient.builder().baseUrl(base).apiKey("sk-ant-test").maxRetries(0).build();
    var ask = MessageCreateParams.builder().model("large").maxTokens(200).addUserMessage(QUESTION).build();
    say("messages", client.messages().create(ask).content().get(0).asText().text());
    var whole = MessageAccumulator.create();
    try (var stream = client.messages().createStreaming(ask)) {
      stream.stream().forEach(whole::accumulate);
    }
    say("messages stream", whole.message().content().get(0).asText().text() + whole.message().usage().outputTokens());
    var formed = ask.toBuilder().outputConfig(Form.class).build();
    say("messages form", client.messages().create(formed).content().get(0).asText().text());
  }

  static void langchain(String base) throws Exception {
    var chat = OpenAiChatModel.builder().baseUrl(base + "/v1").apiKey("sk-test").modelName("large").maxRetries(0).build();
    say("langchain4j chat", chat.chat(QUESTION));
    var done = new CompletableFuture<String>();
    OpenAiStreamingChatModel.builder().baseUrl(base + "/v1").apiKey("sk-test").modelName("large").build().chat(QUESTION, new StreamingChatResponseHandler() {
      public void onPartialResponse(String piece) {}
      public void onCompleteResponse(ChatResponse whole) { done.complete(whole.aiMessage().text()); }
      public void onError(Throwable error) { done.completeExceptionally(error); }
    });
    say("langchain4j chat stream", done.get(20, TimeUnit.SECONDS));
    var messages = AnthropicChatModel.builder().baseUrl(base + "/v1").apiKey("sk-ant-test").modelName("large").maxTokens(200).maxRetries(0).build();
    say("langchain4j messages", messages.chat(QUESTION));
  }

  static void say(String what, Object value) {
    System.out.println(what + ": " + value);
  }
}
