import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { prettyJson, visible } from '../../../../shared/browser/visible-text.ts'
import { type Block, type Inline, markdownBlocks } from './markdown.ts'

const wordsOf = (inside: readonly Inline[]): string =>
  inside.map(one => ('inside' in one ? wordsOf(one.inside) : one.text) + ('href' in one ? one.href : '')).join('')

describe('the Markdown of a model', () => {
  it('has headings, lists, quotes, code and links', () => {
    const text = [
      '# Title',
      'A **bold** and *thin* `code` [page](https://example.com/x).',
      '',
      '- one',
      '- two',
      '  more',
      '1. first',
      '> said',
      '---',
      '```ts',
      '# not a heading',
      '```',
    ].join('\n')
    const blocks = markdownBlocks(text)
    expect(blocks.map(({ is }) => is)).toEqual(['heading', 'paragraph', 'list', 'list', 'quote', 'rule', 'code'])
    expect(blocks[1]).toMatchObject({
      inside: [
        { text: 'A ' },
        { is: 'strong', inside: [{ text: 'bold' }] },
        { text: ' and ' },
        { is: 'em', inside: [{ text: 'thin' }] },
        { text: ' ' },
        { is: 'code', text: 'code' },
        { text: ' ' },
        { is: 'link', href: 'https://example.com/x', inside: [{ text: 'page' }] },
        { text: '.' },
      ],
    })
    expect(blocks[2]).toMatchObject({ ordered: false, items: [[{ text: 'one' }], [{ text: 'two\nmore' }]] })
    expect(blocks[6]).toEqual({ is: 'code', language: 'ts', text: '# not a heading' })
  })

  it('makes no link of what a browser would run, and no markup of HTML', () => {
    for (const text of [
      '[x](javascript:alert(1))',
      '[x](data:text/html,y)',
      '<img src=x onerror=alert(1)>',
      'a_b_c 2*3*4',
    ])
      expect(markdownBlocks(text)).toEqual([{ is: 'paragraph', inside: [{ is: 'text', text }] }])
    expect(markdownBlocks('![a](https://example.com/pixel.png)')).toMatchObject([{ inside: [{ is: 'image' }] }])
  })

  it('loses no word, whatever stands in the text', () => {
    const piece = fc.constantFrom(
      '**',
      '*',
      '_',
      '`',
      '[',
      '](',
      ')',
      '!',
      '> ',
      '- ',
      '# ',
      '```',
      '\n',
      'ab',
      ' ',
      'https://e.x',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), pieces => {
        const text = pieces.join('')
        const said = (block: Block): string => {
          if (block.is === 'rule') return ''
          if (block.is === 'list') return block.items.map(wordsOf).join('')
          return block.is === 'code' ? block.text : wordsOf(block.inside)
        }
        const count = (all: string) => all.split('ab').length
        expect(
          count(
            markdownBlocks(text)
              .map(block => said(block) + ('language' in block ? block.language : ''))
              .join(' '),
          ),
        ).toBe(count(text))
      }),
    )
  })

  it('is read in one pass, also where it is all marks', () => {
    for (const mark of ['[', '*', '**a', '`', '![', '[](', '> ', '- ', '_a']) {
      const before = performance.now()
      markdownBlocks(mark.repeat(20_000 / mark.length))
      expect(performance.now() - before).toBeLessThan(2000)
    }
  })
})

describe('a text of a stranger', () => {
  it('shows what would not be seen, and what would turn its letters around', () => {
    expect(visible('a\u00adb\u{e0041}\u3164c\u2028')).toBe('a⟨U+00AD⟩b⟨U+E0041⟩⟨U+3164⟩c⟨U+2028⟩')
    const drawn = 'می\u200cروم 👩\u200d💻 ❤\ufe0f'
    expect(visible(drawn)).toBe(drawn)
    expect(visible('a\u202eb\u0000c\u200b\td\r\n')).toBe('a⟨U+202E⟩b⟨U+0000⟩c⟨U+200B⟩\td\n')
  })

  it('is indented where it is JSON', () => {
    expect(prettyJson('{"a":[1]}')).toBe('{\n  "a": [\n    1\n  ]\n}')
    expect(prettyJson('{"a":')).toBe('{"a":')
    expect(prettyJson('text')).toBe('text')
    expect(prettyJson('{"id":9007199254740993}')).toBe('{"id":9007199254740993}')
    expect(prettyJson(undefined)).toBe('nothing')
  })
})
