import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { turnText } from './turn-text.ts'

/** What a reader has who takes pieces as they come, and begins anew at seq 1. */
function reader(lastOnly = false) {
  let text = ''
  let last = 0
  const voice = turnText({
    lastOnly,
    tell(seq, piece) {
      if (seq === 1) text = ''
      else expect(seq).toBe(last + 1)
      // Only what takes something back may say nothing.
      if (seq > 1) expect(piece).not.toBe('')
      expect(piece.isWellFormed()).toBe(true)
      last = seq
      text += piece
    },
    takeBack: () => undefined,
  })
  return { voice, text: () => text, told: () => last }
}

const answer = fc.record({
  /** Attempts that broke off, each after some pieces. */
  broken: fc.array(fc.array(fc.string({ maxLength: 5 }), { maxLength: 4 }), { maxLength: 2 }),
  text: fc.string({ unit: 'binary', maxLength: 30 }),
  cuts: fc.array(fc.nat(30), { maxLength: 5 }),
  /** A host that streams nothing tells an answer only when it is whole. */
  streamed: fc.boolean(),
})

const expected = (texts: readonly string[]) => texts.filter(text => text !== '').join('\n\n')

describe('the voice of a turn', () => {
  it('tells pieces that join to its text, whatever breaks off and wherever a piece is cut', () => {
    fc.assert(
      fc.property(fc.array(answer, { minLength: 1, maxLength: 4 }), fc.nat(4), (answers, restartAt) => {
        const { voice, text, told } = reader()
        const speak = ({ broken, text: whole, cuts, streamed }: (typeof answers)[number]) => {
          for (const pieces of broken) {
            voice.begin()
            for (const piece of pieces) voice.delta(piece)
          }
          voice.begin()
          const places = [0, ...cuts.filter(cut => cut <= whole.length).sort((a, b) => a - b), whole.length]
          if (streamed) places.slice(1).forEach((to, at) => void voice.delta(whole.slice(places[at], to)))
        }
        for (const [at, one] of answers.entries()) {
          if (at === restartAt) {
            voice.resume()
            for (const { text: before } of answers.slice(0, at)) voice.said({ text: before, toolCalls: [] })
          }
          speak(one)
          voice.said({ text: one.text, toolCalls: [] })
        }
        const whole = voice.finish().text
        expect(whole).toBe(expected(answers.map(one => one.text)))
        expect(told() === 0 ? '' : text()).toBe(whole)
      }),
      { numRuns: 500 },
    )
  })

  it('tells each piece as it comes, and gathers those of a very long text', () => {
    const { voice, told } = reader()
    voice.begin()
    for (let n = 0; n < 1024; n++) voice.delta('abcd')
    expect(told()).toBe(1024)
    for (let n = 0; n < 63; n++) voice.delta('abcd')
    expect(told()).toBe(1024)
    voice.delta('abcd')
    expect(told()).toBe(1025)
  })

  it('gives the last of several answers where the ones before did not fit', () => {
    const { voice, text } = reader(true)
    for (const said of ['not JSON', '{"a":1}']) {
      voice.begin()
      voice.delta(said)
      voice.said({ text: said, toolCalls: [] })
    }
    expect(voice.finish().text).toBe('{"a":1}')
    expect(text()).toBe('{"a":1}')
  })

  it('keeps the calls of all answers once, also when they are said again', () => {
    const { voice } = reader()
    const call = { id: 'c1', name: 'wait', arguments: {} }
    voice.said({ text: 'a', toolCalls: [call] })
    voice.resume()
    voice.said({ text: 'a', toolCalls: [call] })
    expect(voice.finish()).toEqual({ text: 'a', toolCalls: [call] })
  })
})
