import type { Growth } from './measured.ts'

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [860, 480, 76, 310, 44, 60]
const COLOURS = ['#1b6ca8', '#c0392b', '#2e8b57', '#8e44ad', '#d68910', '#117a8b', '#7f8c8d', '#34495e', '#a04000']

/** A plot of times over sizes, both logarithmic: what does not depend on the size is level, what is linear rises by 45 degrees. */
export function plot({ title, sizes, operations: measured }: Growth): string {
  const operations = measured.flatMap(({ name, unit, values }) => (unit === 'ms' ? [{ name, ms: values }] : []))
  const all = operations.flatMap(({ ms }) => ms)
  const [low, high] = [Math.floor(Math.log10(Math.min(...all))), Math.ceil(Math.log10(Math.max(...all)))]
  const [from, to] = [Math.log10(sizes[0]!), Math.log10(sizes.at(-1)!)]
  const x = (size: number) => LEFT + ((Math.log10(size) - from) / (to - from || 1)) * (WIDTH - LEFT - RIGHT)
  const y = (ms: number) => HEIGHT - BOTTOM - ((Math.log10(ms) - low) / (high - low || 1)) * (HEIGHT - TOP - BOTTOM)
  const decades = Array.from({ length: high - low + 1 }, (_, at) => 10 ** (low + at))
  const ends = spaced(operations.map(({ ms }) => y(ms.at(-1)!)))
  const right = WIDTH - RIGHT
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<title>${title}</title><rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    `<text x="${LEFT}" y="24" font-size="15" font-weight="bold">${title}</text>`,
    ...decades.map(
      ms =>
        `<line x1="${LEFT}" x2="${right}" y1="${y(ms)}" y2="${y(ms)}" stroke="#ddd"/>` +
        `<text x="${LEFT - 8}" y="${y(ms) + 4}" text-anchor="end">${ms} ms</text>`,
    ),
    ...sizes.map(
      size =>
        `<line x1="${x(size)}" x2="${x(size)}" y1="${TOP}" y2="${HEIGHT - BOTTOM}" stroke="#ddd"/>` +
        `<text x="${x(size)}" y="${HEIGHT - BOTTOM + 20}" text-anchor="middle">${size.toLocaleString('en-US')}</text>`,
    ),
    ...operations.map(({ name, ms }, at) => {
      const colour = COLOURS[at % COLOURS.length]!
      const points = ms.map((value, index) => `${x(sizes[index]!).toFixed(1)},${y(value).toFixed(1)}`)
      return (
        `<polyline points="${points.join(' ')}" fill="none" stroke="${colour}" stroke-width="2"/>` +
        `<text x="${right + 8}" y="${(ends[at]! + 4).toFixed(1)}" fill="${colour}">${name}</text>`
      )
    }),
    '</svg>\n',
  ].join('\n')
}

/** The same heights, moved apart until labels do not cover each other; each keeps its place in the list. */
function spaced(heights: readonly number[]): number[] {
  const placed = heights.map((height, at) => ({ height, at })).sort((a, b) => a.height - b.height)
  for (let index = 1; index < placed.length; index++) {
    placed[index]!.height = Math.max(placed[index]!.height, placed[index - 1]!.height + 14)
  }
  const found: number[] = []
  for (const { height, at } of placed) found[at] = height
  return found
}
