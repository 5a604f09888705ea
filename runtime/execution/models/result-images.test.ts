import { describe, expect, it } from 'vitest'
import { newestImages, withoutImages } from './model.ts'

/** The first bytes of a PNG of that size, which is all that is looked at. */
function png(width: number, height: number): string {
  const bytes = new Uint8Array(33)
  bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52])
  const view = new DataView(bytes.buffer)
  view.setUint32(16, width)
  view.setUint32(20, height)
  return btoa(String.fromCharCode(...bytes))
}
const PNG = png(20, 10)

describe('an image in what a tool gave', () => {
  it('is taken out, of the kind that its bytes say, and has a word in its place', () => {
    const jpeg = btoa('\xff\xd8\xff\xe0 and more, in all')
    const { output, images } = withoutImages({
      content: [
        { type: 'text', text: 'see' },
        { type: 'image', data: PNG, mimeType: 'image/gif' },
        { type: 'resource', resource: { uri: 'file:///a.jpg', blob: jpeg, mimeType: 'image/jpeg' } },
      ],
      structuredContent: { a: 1 },
    })
    expect(images).toEqual([
      { mediaType: 'image/png', base64: PNG },
      { mediaType: 'image/jpeg', base64: jpeg },
    ])
    expect(output).toEqual({
      content: [
        { type: 'text', text: 'see' },
        { type: 'image', mimeType: 'image/png', bytes: 33 },
        { type: 'image', mimeType: 'image/jpeg', bytes: atob(jpeg).length },
      ],
      structuredContent: { a: 1 },
    })
  })

  it.each<[string, Record<string, unknown>]>([
    ['no image by its bytes', { type: 'image', data: btoa('GIF is what I am not'), mimeType: 'image/gif' }],
    ['no base64', { type: 'image', data: `${PNG.slice(0, -8)}[phone]=`, mimeType: 'image/png' }],
    ['too large for a provider', { type: 'image', data: png(8001, 10), mimeType: 'image/png' }],
    ['too long', { type: 'image', data: PNG + 'A'.repeat(5_000_000), mimeType: 'image/png' }],
    ['too wide', { type: 'image', data: btoa('GIF89a\x41\x1f\x01\0 and so on'), mimeType: 'image/gif' }],
    ['a drawing', { type: 'image', data: btoa('<svg/>'), mimeType: 'image/svg+xml' }],
    ['a resource of that kind', { type: 'resource', resource: { uri: 'x:y', blob: '0', mimeType: 'image/png' } }],
  ])('has a sentence in its place where it is %s', (_, item) => {
    const { output, images } = withoutImages({ content: [item] })
    expect(images).toEqual([])
    const { mimeType } = (item.resource ?? item) as { mimeType: string }
    const word = { type: 'image', mimeType, bytes: expect.any(Number), text: 'This image cannot be shown.' }
    expect(output).toEqual({ content: [word] })
  })

  it.each<[string, unknown]>([
    ['a sound', { type: 'audio', data: PNG, mimeType: 'audio/wav' }],
    ['another resource', { type: 'resource', resource: { uri: 'x:y', text: 'words' } }],
    ['a file', { type: 'resource', resource: { uri: 'x:y', blob: btoa('%PDF'), mimeType: 'application/pdf' } }],
    ['nothing', null],
  ])('stays what it is where it is %s', (_, item) => {
    const output = { content: [item] }
    expect(withoutImages(output)).toEqual({ output, images: [] })
  })

  it.each([undefined, null, 'text', { content: 'text' }])('is not looked for in %j', output => {
    expect(withoutImages(output)).toEqual({ output, images: [] })
  })
})

it('sends the newest images of a conversation', () => {
  const images = Array.from({ length: 25 }, () => ({ mediaType: 'image/png' as const, base64: PNG }))
  const results = images.map(image => ({ callId: 'c', name: 'f', content: '', failed: false, images: [image] }))
  const sent = newestImages([
    { role: 'user', text: 'q' },
    { role: 'tool', results },
  ])
  expect(images.map(image => sent.has(image))).toEqual([...Array(5).fill(false), ...Array(20).fill(true)])
})

/** Of each kind an image whose longer side has so many pixels, as far as it is read. */
const KINDS: Record<string, (side: number) => string> = {
  png: side => `\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10${big(side, 4)}\x08\x02`,
  gif: side => `GIF89a${little(side, 2)}\x10\0\xf7`,
  jpeg: side => `\xff\xd8\xff\xe0\0\x04ab\xff\xc4\0\x03a\xff\xc2\0\x11\x08${big(side, 2)}\0\x10\x03\x01`,
  'webp, lossy': side => `RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a${little(side, 2)}\x10\0`,
  'webp, lossless': side => `RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f${little(((side - 1) << 14) | 15, 4)}`,
  'webp, extended': side => `RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x0f\0\0${little(side - 1, 3)}`,
}
const little = (value: number, width: number) =>
  String.fromCharCode(...Array.from({ length: width }, (_, at) => (value >>> (8 * at)) & 0xff))
const big = (value: number, width: number) => [...little(value, width)].reverse().join('')
const shownOf = (text: string) =>
  withoutImages({ content: [{ type: 'image', data: btoa(text), mimeType: 'image/png' }] }).images.length

it.each(Object.keys(KINDS))('is shown up to 8000 pixels to a side: %s', kind => {
  expect([1, 8000, 8001, 9000].map(side => shownOf(KINDS[kind]!(side)))).toEqual([1, 1, 0, 0])
})

it.each([
  ['a JPEG whose size comes too late', '\xff\xd8\xff\xe0\x40\0ab', 1],
  ['a JPEG with something else in the way', '\xff\xd8\xff\xe0\0\x04ab0123456789', 1],
  ['a PNG that is cut', '\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 0],
  ['a GIF that is cut', 'GIF89a', 0],
])('whose size is not known: %s', (_, text, shown) => {
  expect(shownOf(text)).toBe(shown)
})
