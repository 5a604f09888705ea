import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { lineDiff } from '../host/file-diff.ts'
import { hasBlock, withBlock, withoutBlock } from './marked-block.ts'
import { linesThatSet, shellLines } from './shell-lines.ts'

const LINES = ['# why', 'export A=1']

/** Bytes as they stand in start-up files: line ends of every kind, characters above ASCII, NUL, and pieces of our own marks. */
const piece = fc.oneof(
  fc.constantFrom(
    '\n',
    '\r\n',
    '\r',
    '',
    '\0',
    'é',
    '\\\n',
    '# >>> waybill',
    'router >>>',
    '# <<<',
    'export KEY=secret',
    'fi',
  ),
  fc.string({ unit: fc.integer({ min: 0, max: 255 }).map(code => String.fromCharCode(code)), maxLength: 12 }),
)
const bytes = fc
  .array(piece, { maxLength: 12 })
  .map(pieces => pieces.join(''))
  .filter(text => !/^# (?:>>>|<<<) waybill router/m.test(text))

describe('marked lines', () => {
  it('come out of any file so that every byte is as it was', () => {
    fc.assert(
      fc.property(fc.option(bytes, { nil: undefined }), fc.nat(3), (text, folders) => {
        const put = withBlock(text, LINES, text === undefined ? folders : 0)
        expect(hasBlock(put)).toBe(true)
        expect(put).toContain('export A=1\n')
        expect(withoutBlock(put)).toEqual({ text, newFolders: text === undefined ? folders : 0 })
      }),
      { numRuns: 3000 },
    )
  })

  it('change nothing when they are there already, and change in place otherwise', () => {
    fc.assert(
      fc.property(fc.option(bytes, { nil: undefined }), bytes, (text, below) => {
        const once = withBlock(text, LINES, 2)
        expect(withBlock(once, LINES, 0)).toBe(once)
        const edited = once + below
        expect(withBlock(edited, LINES, 0)).toBe(edited)
        const moved = withBlock(edited, ['other'], 0)
        expect(withBlock(moved, LINES, 0)).toBe(edited)
        expect(withoutBlock(moved)).toEqual(withoutBlock(edited))
      }),
      { numRuns: 1000 },
    )
  })

  it('leave what a person wrote around them, wherever that is', () => {
    fc.assert(
      fc.property(fc.option(bytes, { nil: undefined }), bytes, bytes, (text, above, below) => {
        // Written above the first line and below the last, with our lines in between and without them.
        const edited = above + withBlock(text, LINES) + below
        fc.pre(!/^# (?:>>>|<<<) waybill router/m.test(above + (text ?? '')) && (above === '' || /[\n]$/.test(above)))
        const plain = text ?? ''
        const closed = plain !== '' && !plain.endsWith('\n') && below !== ''
        const kept = above + plain + (closed ? '\n' : '') + below
        expect(withoutBlock(edited).text).toBe(kept === '' && text === undefined ? undefined : kept)
      }),
      { numRuns: 3000 },
    )
  })

  it('are known again after an editor changed all line ends, or cut the last one', () => {
    const put = withBlock('a\nb\n', LINES)
    expect(withoutBlock(put.replaceAll('\n', '\r\n')).text).toBe('a\r\nb\r\n')
    expect(withoutBlock(put.slice(0, -1)).text).toBe('a\nb\n')
  })

  it('are all taken out where they stand more than once', () => {
    const put = withBlock('a\n', LINES)
    expect(withoutBlock(`${put}b\n${withBlock('', LINES)}c`).text).toBe('a\nb\nc')
    expect(() => withBlock(put + withBlock('', LINES), LINES)).toThrow('twice')
  })

  it.each([
    ['# >>> waybill router >>>\nexport A=1\n'],
    ['a\n# <<< waybill router <<<\n'],
    ['# >>> waybill router >>>\n# >>> waybill router >>>\n# <<< waybill router <<<\n'],
  ])('are not guessed at when a mark has no counterpart: %j', text => {
    expect(() => withoutBlock(text)).toThrow('without its counterpart')
    expect(() => withBlock(text, LINES)).toThrow('without its counterpart')
  })
})

describe('a diff', () => {
  it('shows our lines and none of the others', () => {
    const before = 'export KEY=secret'
    const after = withBlock(before, LINES)
    const come = '# >>> waybill router >>> (line end added)\n+# why\n+export A=1\n+# <<< waybill router <<<'
    expect(lineDiff('/rc', before, after)).toBe(
      `--- /rc\n+++ /rc\n@@ -1,0 +2,4 @@\n\\ The line before gets its line end\n+${come}\n`,
    )
    expect(lineDiff('/rc', after, before)).toContain('@@ -2,4 +1,0 @@\n\\ The line before loses its line end\n-# >>>')
    expect(lineDiff('/rc', undefined, 'x\n')).toBe('--- /dev/null\n+++ /rc\n@@ -0,0 +1,1 @@\n+x\n')
    expect(lineDiff('/rc', 'a\nx\nb\n', 'a\nb\n')).toBe('--- /rc\n+++ /rc\n@@ -2,1 +1,0 @@\n-x\n')
  })
})

describe('the lines of a shell', () => {
  const variables = [{ name: 'ANTHROPIC_BASE_URL', value: 'http://127.0.0.1:1' }]

  it('are found where a person set such an address before', () => {
    const text = [
      'export PATH=/bin',
      '# export ANTHROPIC_BASE_URL=x',
      'unset ANTHROPIC_BASE_URL',
      'export ANTHROPIC_BASE_URL=x',
      '  ANTHROPIC_BASE_URL=x',
      'set -gx ANTHROPIC_BASE_URL x',
      'true && export A=1 ANTHROPIC_BASE_URL=x',
      'echo $ANTHROPIC_BASE_URL',
      'MY_ANTHROPIC_BASE_URL=x',
    ].join('\n')
    expect(linesThatSet(text, variables).map(({ line }) => line)).toEqual([4, 5, 6, 7])
  })

  it('watch only a router that onboard started', () => {
    expect(shellLines('bash', { variables, pidFile: undefined }).slice(1)).toEqual([
      "export ANTHROPIC_BASE_URL='http://127.0.0.1:1'",
    ])
    expect(shellLines('fish', { variables, pidFile: "/a'b\\c" })[1]).toContain("test -r '/a\\'b\\\\c'")
    expect(shellLines('zsh', { variables, pidFile: "/a'b" })[1]).toContain("[ -r '/a'\\''b' ]")
  })
})
