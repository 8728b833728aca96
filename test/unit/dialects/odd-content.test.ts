// Content that few harnesses send: each piece is carried, or left out with a loss that names it. Nothing disappears in silence.

import t from 'tap'
import type { CanonicalRequest, DialectId } from '../../../src/domain/conversation.js'
import { decode } from '../../support/dialects.js'

const read = (id: DialectId, body: object) => decode(id, body)
const seen = ({ messages, losses, rules }: CanonicalRequest) => ({
  messages: messages.map(({ role, content }) => [role, content]),
  losses: losses.map(({ path }) => path),
  rules,
})

t.test('Anthropic: documents, search results, server tools, prefill', async t => {
  const user = (...content: object[]) => ({ role: 'user', content })
  const got = read('anthropic_messages', {
    output_config: { format: { type: 'regex' } },
    messages: [
      user(
        { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'doc' } },
        { type: 'search_result', content: [{ type: 'text', text: 'found' }] },
        { type: 'image', source: { type: 'url', url: 'https://x/y.png' } },
        { type: 'image', source: { type: 'file', file_id: 'f' } },
        { type: 'container_upload', file_id: 'f' },
        { type: 'tool_reference', tool_name: 'unknown' },
      ),
      {
        role: 'assistant',
        content: [
          { type: 'redacted_thinking', data: 'x' },
          { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
          { type: 'web_search_tool_result', tool_use_id: 's', content: [] },
          { type: 'image', source: { type: 'url', url: 'https://x/y.png' } },
          { type: 'tool_use', id: 'a', name: 'f', input: null },
          { type: 'tool_use', id: 'b', name: 'f', input: '{"raw": ' },
        ],
      },
    ],
  })
  t.strictSame(seen(got), {
    messages: [
      [
        'user',
        [
          { type: 'text', text: 'doc' },
          { type: 'text', text: 'found' },
          { type: 'image', url: 'https://x/y.png' },
          { type: 'text', text: '[image omitted]' },
          { type: 'text', text: 'Tool: unknown' },
        ],
      ],
      ['assistant', null],
    ],
    losses: [
      'messages[0].content[3]',
      'messages[0].content[4]',
      'messages[1].content[0]',
      'messages[1].content[1]',
      'messages[1].content[2]',
      'messages[1].content[3]',
      'output_config.format',
      'messages[1]',
    ],
    rules: ['content_omitted'],
  })
  t.match(got.messages[1], { toolCalls: [{ arguments: '{}' }, { arguments: '{"raw": ' }] })
  const choice = (value: object) =>
    read('anthropic_messages', { tools: [{ name: 'f', strict: true }], tool_choice: value, messages: [user()] })
      .toolChoice
  t.strictSame(choice({ type: 'none' }), { type: 'none' })
  t.strictSame(choice({ type: 'tool', name: 'f' }), { type: 'function', name: 'f' })
  t.throws(() => choice({ type: 'x' }), { message: /^tool_choice\.type: wanted one of / })
})

t.test('Chat: audio, refusals, calls and tools of other kinds, thinking under its other name', async t => {
  const got = read('openai_chat', {
    tools: [{ type: 'custom', custom: { name: 'p' } }, { function: { name: 'f' } }],
    tool_choice: { type: 'allowed_tools', mode: 'required', tools: [] },
    messages: [
      {
        role: 'user',
        content: [
          { type: 'input_audio', input_audio: {} },
          { type: 'image_url', image_url: 'https://x/y.png' },
        ],
      },
      {
        role: 'assistant',
        reasoning: 'r',
        content: [
          { type: 'text', text: 'a' },
          { type: 'refusal', refusal: 'b' },
        ],
        tool_calls: [
          { id: 'c', type: 'custom', custom: {} },
          { id: 'd', function: { name: 'f', arguments: { x: 1 } } },
        ],
      },
      {
        role: 'system',
        content: [
          { type: 'image_url', image_url: { url: 'u' } },
          { type: 'text', text: 's' },
        ],
      },
    ],
  })
  t.strictSame(seen(got), {
    messages: [
      [
        'user',
        [
          { type: 'text', text: '[input_audio omitted]' },
          { type: 'image', url: 'https://x/y.png' },
        ],
      ],
      ['assistant', 'ab'],
      ['user', 's'],
    ],
    losses: ['messages[0].content[0]', 'messages[1].tool_calls[0]', 'messages[2].content', 'tools[0]'],
    rules: ['content_omitted', 'notice_as_user_message'],
  })
  t.match(got.messages[1], { reasoning: 'r', toolCalls: [{ id: 'd', arguments: '{"x": 1}' }] })
  t.strictSame(got.toolChoice, { type: 'required' })
})

t.test('Responses: agents, files, outputs of any form, tools that stand twice', async t => {
  const call = (id: string) => ({ type: 'function_call', call_id: id, name: 'f', arguments: '{}' })
  const output = (id: string, value: unknown) => ({ type: 'function_call_output', call_id: id, output: value })
  const got = read('openai_responses', {
    tools: [
      { type: 'function', name: 'f' },
      { type: 'custom', name: 'f' },
    ],
    tool_choice: { type: 'function', name: 'f' },
    text: { format: { type: 'grammar' } },
    input: [
      {
        type: 'agent_message',
        author: 'helper',
        content: [
          { type: 'input_text', text: 'done' },
          { type: 'encrypted_content', encrypted_content: 'x' },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'input_file', file_id: 'f' },
          { type: 'input_image', file_id: 'f' },
        ],
      },
      { role: 'user', content: [{ type: 'input_image', image_url: { url: 'https://x/y.png' }, detail: 'low' }] },
      call('a'),
      call('b'),
      call('c'),
      output('a', { ok: true }),
      output('b', [1, 2]),
      output('c', null),
      { role: 'assistant', content: [{ type: 'refusal', refusal: 'no' }] },
      { type: 'reasoning', summary: [] },
    ],
  })
  t.strictSame(seen(got), {
    messages: [
      ['user', '[message from helper]\ndone'],
      ['user', '[file omitted]\n[image omitted]'],
      ['user', [{ type: 'image', url: 'https://x/y.png', detail: 'low' }]],
      ['assistant', null],
      ['tool', '{"ok": true}'],
      ['tool', '[1, 2]'],
      ['tool', ''],
      ['assistant', 'no'],
    ],
    losses: ['tools[1]', 'input[0].content[1]', 'input[1].content[0]', 'input[1].content[1]', 'text.format'],
    rules: ['content_omitted'],
  })
  t.strictSame(got.toolChoice, { type: 'function', name: 'f' })
  t.strictSame(read('openai_responses', { input: 'x', text: { format: { type: 'json_object' } } }).responseFormat, {
    type: 'json_object',
  })
})

t.test('Gemini: audio, files, code parts, thoughts after text', async t => {
  const got = read('google_generate', {
    systemInstruction: { parts: [{ text: 'S' }, { inlineData: { mimeType: 'image/png', data: 'x' } }] },
    contents: [
      'plain',
      {
        parts: [
          'text',
          { inlineData: { mimeType: 'audio/wav', data: 'x' } },
          { fileData: { mimeType: 'image/png', fileUri: 'gs://bucket/x' } },
          { fileData: { mimeType: 'image/png', fileUri: 'https://x/y.png' } },
          { executableCode: { code: 'x' } },
        ],
      },
      { role: 'model', parts: [{ text: 'a' }, { text: 'late', thought: true }, { executableCode: { code: 'x' } }] },
      { role: 'function', parts: [{ functionResponse: { name: 'f', response: 'text' } }] },
      { role: 'system', parts: [{ text: 'notice' }] },
    ],
  })
  t.strictSame(seen(got), {
    messages: [
      ['system', 'S'],
      ['user', 'plain'],
      [
        'user',
        [
          { type: 'text', text: 'text' },
          { type: 'text', text: '[data omitted: audio/wav]' },
          { type: 'text', text: '[file omitted: image/png]' },
          { type: 'image', url: 'https://x/y.png' },
        ],
      ],
      ['assistant', 'a'],
      ['tool', 'text\n\nnotice'],
    ],
    losses: [
      'systemInstruction.parts[1]',
      'contents[1].parts[1]',
      'contents[1].parts[2]',
      'contents[1].parts[4]',
      'contents[2].parts[2]',
    ],
    rules: ['content_omitted', 'thinking_order_flattened', 'notice_folded_into_tool_result'],
  })
})
