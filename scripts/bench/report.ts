import type { Figure, Report } from './harness.ts'

export function toText(report: Report): string {
  const { machine, unit } = report
  const width = Math.max(
    ...report.variants.map(variant => variant.name.length),
    ...report.figures.map(figure => figure.name.length),
  )
  const lines = [
    `${report.bench}: ${report.title}`,
    report.about,
    `node ${machine.node}, ${machine.cores} cores (${machine.cpu}), load average ${shown(machine.loadBefore)} before, ${shown(machine.loadAfter)} after, ${report.rounds} rounds`,
    '',
    ...report.variants.map(
      v =>
        `  ${v.name.padEnd(width)}  ${shown(v.median)} ${unit}   (middle half ${shown(v.q1)} to ${shown(v.q3)}, all ${shown(v.min)} to ${shown(v.max)})`,
    ),
    ...report.ratios.map(
      r => `  ${r.name} / ${r.over}: ${shown(r.median)} ×   (round by round ${shown(r.min)} to ${shown(r.max)})`,
    ),
    ...report.figures.map(figure => `  ${figure.name.padEnd(width)}  ${figureText(figure)}`),
    ...report.expectations.map(one => `  ${expectationText(one)}`),
  ]
  return `${lines.join('\n')}\n`
}

const FEW = 10

export function toMarkdown(report: Report): string {
  const { machine, unit } = report
  // Where there are many, they say what the table of figures says: one line stands for all that came out as they have to.
  const known = report.figures.filter(({ exact }) => exact).map(({ name }) => name)
  const told = report.expectations.filter(({ says, met }) => known.length <= FEW || !met || !known.includes(says))
  const folded = report.expectations.length - told.length
  return [
    `## ${report.title}`,
    '',
    `${report.about} \`npm run bench -- ${report.bench}\` on node ${machine.node}, ${machine.cores} cores (${machine.cpu}), load average ${shown(machine.loadBefore)} before and ${shown(machine.loadAfter)} after; ${report.rounds} interleaved rounds.`,
    '',
    `| variant | median, ${unit} | middle half | min to max | over the first, round by round |`,
    '|---|---|---|---|---|',
    ...report.variants.map((v, index) => {
      const ratio = report.ratios[index - 1]
      const over = ratio ? `${shown(ratio.median)} × (${shown(ratio.min)} to ${shown(ratio.max)})` : ''
      return `| ${v.name} | ${shown(v.median)} | ${shown(v.q1)} to ${shown(v.q3)} | ${shown(v.min)} to ${shown(v.max)} | ${over} |`
    }),
    ...(report.figures.length > 0 ? ['', '| figure | value |', '|---|---|'] : []),
    ...report.figures.map(figure => `| ${figure.name} | ${figureText(figure)} |`),
    ...(report.expectations.length > 0 ? [''] : []),
    ...(folded > 0 ? [`- met: ${folded} figures of the table are those that they have to be`] : []),
    ...told.map(one => `- ${expectationText(one)}`),
  ].join('\n')
}

/** The document with the bench's section replaced, or added at its end. Text outside the markers stays as it is. */
export function replaceSection(document: string, name: string, body: string): string {
  const open = `<!-- bench:${name} -->`
  const close = `<!-- /bench:${name} -->`
  const section = `${open}\n${body}\n${close}`
  const from = document.indexOf(open)
  if (from === -1) return `${document.trimEnd()}\n\n${section}\n`.trimStart()
  const to = document.indexOf(close, from)
  if (to === -1) throw new Error(`The document has "${open}" but no "${close}" after it: put the closing marker back.`)
  return document.slice(0, from) + section + document.slice(to + close.length)
}

function expectationText({ says, value, bound, met }: Report['expectations'][number]): string {
  const found = bound.startsWith('exactly') ? String(+value.toPrecision(12)) : shown(value)
  return `${met ? 'met' : 'NOT MET'}: ${says}: ${found} (expected ${bound})`
}

function figureText({ value, unit, exact }: Figure): string {
  return `${exact ? value : shown(value)} ${unit}`.trimEnd()
}

/** Three significant digits, thousands grouped. */
export function shown(value: number): string {
  if (!Number.isFinite(value)) return String(value)
  const digits = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)))
  const step = 10 ** (digits - 2)
  const rounded = digits >= 3 ? Math.round(value / step) * step : value
  return rounded.toLocaleString('en-US', { maximumFractionDigits: Math.max(0, 2 - digits) })
}
