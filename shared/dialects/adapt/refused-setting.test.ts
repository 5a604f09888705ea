import { describe, expect, it } from 'vitest'
import { refusedSetting } from './refused-setting.ts'

const bytes = (value: unknown) => new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value))
const anthropic = (message: string) => ({ type: 'error', error: { type: 'invalid_request_error', message } })
const openai = (message: string, more: object = {}) => ({ error: { message, type: 'invalid_request_error', ...more } })

describe('the setting that a provider refused', () => {
  it.each<[string, boolean]>([
    ["This model does not support effort level 'xhigh'.", true],
    ['This model does not support the effort parameter.', false],
    ["Unsupported value: 'temperature' does not support 0.2 with this model.", true],
    ["Unsupported parameter: 'temperature' is not supported with this model.", false],
    ['`reasoning_effort` must be one of `none` or `default`', true],
    ['`reasoning_effort` is not supported with this model', false],
    ['"thinking.type.enabled" is not supported for this model.', true],
    ["'claude-3-5-haiku-20241022' does not support thinking.", false],
  ])('is refused for its value where the sentence says so: %s', (text, ofValue) => {
    expect(refusedSetting(400, bytes(openai(text)))?.ofValue).toBe(ofValue)
  })

  it.each<[string, number, unknown, string | undefined]>([
    ['Anthropic', 400, anthropic('adaptive thinking is not supported on this model'), 'thinking'],
    ['Anthropic', 400, anthropic("'claude-3-5-haiku-20241022' does not support thinking."), 'thinking'],
    [
      'Anthropic',
      400,
      anthropic('"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive".'),
      'thinking',
    ],
    ['Anthropic', 400, anthropic("thinking: Input tag 'adaptive' found using 'type' does not match"), 'thinking'],
    ['Anthropic', 400, anthropic('"thinking.type.between_tools" is not supported for this model.'), 'thinking'],
    ['Anthropic', 400, anthropic('This model does not support the effort parameter.'), 'output_config.effort'],
    ['Anthropic', 400, anthropic("This model does not support effort level 'xhigh'."), 'output_config.effort'],
    ['Anthropic', 400, anthropic('context_management: Extra inputs are not permitted'), 'context_management'],
    [
      'Anthropic',
      400,
      anthropic("context_management.edits.0: Input tag 'compact_20260112' found using 'type' does not match"),
      'context_management',
    ],
    [
      'Mistral',
      422,
      { message: { detail: [{ type: 'extra_forbidden', loc: ['body', 'stream_options', 'include_usage'] }] } },
      'stream_options',
    ],
    ['Mistral', 422, { message: { detail: [{ type: 'extra_forbidden', loc: ['body', 'messages', 0] }] } }, undefined],
    ['Anthropic', 400, anthropic('speed: Extra inputs are not permitted'), 'speed'],
    ['Anthropic', 400, anthropic('`temperature` and `top_p` cannot both be specified for this model.'), 'top_p'],
    ['Anthropic', 400, anthropic('`temperature` is deprecated for this model.'), 'temperature'],
    [
      'Anthropic',
      400,
      anthropic('system.0.cache_control.ephemeral.ttl: Extra inputs are not permitted'),
      'cache_control.ttl',
    ],
    [
      'Anthropic',
      400,
      anthropic('Unexpected value(s) `context-1m-2025-08-07` for the `anthropic-beta` header.'),
      'anthropic-beta',
    ],
    ['Bedrock', 400, { message: 'invalid beta flag' }, 'anthropic-beta'],
    ['Bedrock', 400, { message: '#: extraneous key [context_management] is not permitted' }, 'context_management'],
    [
      'OpenAI',
      400,
      openai("Unsupported parameter: 'max_tokens' is not supported with this model.", {
        code: 'unsupported_parameter',
        param: 'max_tokens',
      }),
      'max_tokens',
    ],
    [
      'OpenAI',
      400,
      openai("Unsupported value: 'minimal' is not supported", { code: 'unsupported_value', param: 'reasoning.effort' }),
      'reasoning.effort',
    ],
    ['OpenAI', 400, openai('Unrecognized request argument supplied: reasoning_effort'), 'reasoning_effort'],
    ['OpenAI', 400, openai('Encrypted content is not supported with this model.'), 'include'],
    ['Groq', 400, openai("property 'safety_identifier' is unsupported"), 'safety_identifier'],
    ['Groq', 400, openai('`reasoning_effort` is not supported with this model'), 'reasoning_effort'],
    ['Groq', 400, openai('`reasoning_effort` must be one of `none` or `default`'), 'reasoning_effort'],
    ['Mistral', 422, { detail: [{ type: 'extra_forbidden', loc: ['body', 'store'] }] }, 'store'],
    [
      'Mistral',
      422,
      { object: 'error', message: { detail: [{ type: 'extra_forbidden', loc: ['body', 'user'] }] } },
      'user',
    ],
    [
      'vLLM',
      400,
      { object: 'error', message: "[{'type': 'extra_forbidden', 'loc': ('body', 'metadata'), 'msg': 'Extra'}]" },
      'metadata',
    ],
    [
      'xAI',
      400,
      { code: 'x', error: 'Model grok-4-latest does not support parameter reasoningEffort.' },
      'reasoning_effort',
    ],
    ['Ollama', 400, openai('"llama3.2:1b" does not support thinking'), 'thinking'],
    [
      'Gemini',
      400,
      openai('Invalid JSON payload received. Unknown name "service_tier": Cannot find field.'),
      'service_tier',
    ],
    [
      'Gemini, in a list',
      400,
      [{ error: { code: 400, message: 'Invalid JSON payload received. Unknown name "store": Cannot find field.' } }],
      'store',
    ],
    ['Fireworks', 400, openai("Extra inputs are not permitted, field: 'prompt_cache_key'"), 'prompt_cache_key'],
    [
      'Fireworks',
      400,
      openai("Extra inputs are not permitted, field: 'messages[2].tool_calls[0].extra_content', value: {}"),
      'messages[].extra_content',
    ],
    [
      'Mistral',
      422,
      { detail: [{ type: 'extra_forbidden', loc: ['body', 'messages', 2, 'assistant', 'reasoning_content'] }] },
      'messages[].reasoning_content',
    ],
    [
      'Groq',
      400,
      openai(
        "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'reasoning_content' is unsupported)]",
      ),
      'messages[].reasoning_content',
    ],
    [
      'Cerebras',
      400,
      {
        message:
          "messages.2.assistant.reasoning_content: property 'messages.2.assistant.reasoning_content' is unsupported",
        type: 'invalid_request_error',
        param: 'validation_error',
        code: 'wrong_api_format',
      },
      'messages[].reasoning_content',
    ],
    // What a request is about, and refusals of another kind.
    ['messages', 400, anthropic('messages: Extra inputs are not permitted'), undefined],
    [
      'tools',
      400,
      openai("Unsupported parameter: 'tools'", { code: 'unsupported_parameter', param: 'tools' }),
      undefined,
    ],
    ['a prototype', 400, anthropic('__proto__: Extra inputs are not permitted'), undefined],
    ['a prototype', 400, openai('x', { code: 'unknown_parameter', param: 'constructor' }), undefined],
    ['another status', 404, anthropic('context_management: Extra inputs are not permitted'), undefined],
    ['a parameter of another error', 400, openai('bad', { code: 'invalid_value', param: 'user' }), undefined],
    [
      'a place deep inside',
      422,
      { detail: [{ type: 'extra_forbidden', loc: ['body', 'messages', 0, 'user'] }] },
      undefined,
    ],
    ['HTML', 400, '<html>temperature is not supported</html>', undefined],
    ['nothing', 400, '', undefined],
  ])('is read from an error of %s (%i)', (_, status, body, setting) => {
    expect(refusedSetting(status, bytes(body))?.setting).toBe(setting)
  })

  it('is found within a time that grows with the text alone, whatever a provider writes', () => {
    const started = performance.now()
    for (const part of [
      'a',
      '`',
      "'",
      '"a',
      'unsupported value ',
      'does not support the ',
      'unknown field ',
      '\\u0000',
    ])
      expect(refusedSetting(400, bytes(openai(part.repeat(6000))))).toBeUndefined()
    expect(refusedSetting(400, bytes(openai('x'.repeat(100_000))))).toBeUndefined()
    expect(performance.now() - started).toBeLessThan(1000)
  })
})
