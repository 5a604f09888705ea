import { expect, it } from 'vitest'
import { toTable } from './text-table.ts'

it('keeps what a cell holds in its line, and its columns straight', () => {
  const hostile = 'gpt\u001b[2J\r\n\u202evalid'
  expect(
    toTable(
      ['model', 'cost'],
      [
        [hostile, '1'],
        ['👩\u200d💻 é', '22'],
      ],
    ),
  ).toBe(
    [
      'model                                cost',
      'gpt\\u{1b}[2J\\u{d}\\u{a}\\u{202e}valid  1',
      '👩\u200d💻 é                              22',
      '',
    ].join('\n'),
  )
})
