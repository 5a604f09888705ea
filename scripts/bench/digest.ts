interface Row {
  what: string
  bench: string
  /** Names of variants or figures of that bench. */
  ours: string
  /** Other products, and how the names of their figures end behind the version. */
  beside?: Readonly<Record<string, string>>
}

const rows: readonly Row[] = [
  ...[
    ['Latency added to a call, observe', 'observe, JSON, added'],
    ['Latency added to a call, enforce with one gate', 'enforce, JSON, added'],
    ['Latency added to the first byte of a stream, observe', 'observe, stream first byte, added'],
    ['Calls over 32 connections, observe', 'observe'],
    ['Calls over 32 connections, enforce with one gate', 'enforce'],
    ['Receipts kept of calls answered, observe', 'observe, kept of answered'],
    ['Memory after that load, observe', 'observe, memory'],
  ].map(([what = '', name = '']) => ({ what, bench: 'peers', ours: `waybill ${name}`, beside: routers(name) })),
  { what: 'Steps of 50 clients', bench: 'steps', ours: '50 clients', beside: engines('50 clients') },
  { what: 'Steps of one client', bench: 'steps', ours: '1 client', beside: engines('1 client') },
  { what: 'Until 1,000 interrupted runs are resumed', bench: 'recovery', ours: 'seconds until all are resumed' },
  { what: 'From an event of a run to 1,000 subscribers, median', bench: 'sse', ours: 'lag, median' },
  {
    what: 'From the first token to the client of a session, median',
    bench: 'first-delta',
    ours: 'to the first message_delta, median',
  },
  { what: 'Start of the router', bench: 'start', ours: 'router' },
  { what: 'Start of the runtime', bench: 'start', ours: 'runtime' },
  { what: 'Runs, store in a file', bench: 'control-planes', ours: 'one control plane, store in a file' },
  { what: 'Runs, store on a libSQL server', bench: 'control-planes', ours: 'one control plane' },
  { what: 'What a step more costs on a node', bench: 'tunnel', ours: 'a step more, median of the paired differences' },
  { what: 'A new runc container', bench: 'isolation', ours: 'runc, a new sandbox to its first command ended' },
  { what: 'A new gVisor sandbox', bench: 'isolation', ours: 'gVisor, a new sandbox to its first command ended' },
  {
    what: 'A command in a new virtual machine from the pool',
    bench: 'isolation',
    ours: 'QEMU/TCG, a command in a machine from the pool',
  },
  { what: 'Verification of 1,000,000 trace records', bench: 'traces', ours: 'verify of 1,000,000 stored records' },
]

/** The table at the top of docs/benchmarks.md and what was not met, both read from its sections: no figure is typed there. */
export function digest(document: string): string {
  const missed = [...document.matchAll(/<!-- bench:([\w-]+) -->\n## (.*)\n([\s\S]*?)<!-- \/bench:\1 -->/g)].flatMap(
    ([, , title = '', text = '']) =>
      [...text.matchAll(/^- NOT MET: (.*)$/gm)].map(([, says]) => `- ${linkTo(title)}: ${says}`),
  )
  return [
    '## In short',
    '',
    'Medians, each from the section in the last column, which says how it was measured and on which machine.',
    '',
    '| | waybill | beside it | measured in |',
    '|---|---|---|---|',
    ...rows.map(({ what, bench, ours, beside = {} }) => {
      const section = sectionOf(document, bench)
      const others = Object.entries(beside).flatMap(([product, rest]) => {
        const name = section.names.find(one => one.startsWith(`${product} `) && one.endsWith(rest))
        return name === undefined ? [] : [`${product} ${section.value(name)}`]
      })
      return `| ${what} | ${section.value(ours)} | ${others.join('; ')} | ${linkTo(section.title)} |`
    }),
    '',
    missed.length === 0 ? 'Every expectation was met.' : 'Not met:',
    ...(missed.length === 0 ? [] : ['', ...missed]),
  ].join('\n')
}

interface Section {
  title: string
  names: string[]
  value: (name: string) => string
}

function sectionOf(document: string, bench: string): Section {
  const [, title = '', text = ''] =
    new RegExp(`<!-- bench:${bench} -->\n## (.*)\n([\\s\\S]*?)<!-- /bench:${bench} -->`).exec(document) ?? []
  const [, unit = ''] = /^\| variant \| median, (.*?) \|/m.exec(text) ?? []
  const figures = new Map<string, string>()
  for (const [, name = '', value = '', more] of text.matchAll(/^\| ([^|]+) \| ([^|]+) \|(.*)$/gm))
    figures.set(name, more === '' ? value : `${value} ${unit}`)
  for (const [, says = '', value = ''] of text.matchAll(/^- (?:NOT MET|met): (.*): (\S+) \(expected/gm))
    if (!figures.has(says)) figures.set(says, says.startsWith('seconds') ? `${value} s` : value)
  return {
    title,
    names: [...figures.keys()],
    value: name => {
      const found = figures.get(name)
      if (found === undefined) throw new Error(`docs/benchmarks.md has no figure "${name}" of the bench ${bench}.`)
      return found
    },
  }
}

function linkTo(title: string): string {
  const anchor = title
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, '')
    .replaceAll(' ', '-')
  return `[${title}](#${anchor})`
}

function routers(name: string): Record<string, string> {
  const firstpass = { firstpass: ` ${name}` }
  if (!name.startsWith('observe') || name.endsWith('kept of answered')) return firstpass
  const rest = name.slice('observe'.length)
  return { ...firstpass, LiteLLM: rest, Portkey: rest }
}

function engines(clients: string): Record<string, string> {
  return { Restate: `, ${clients}`, DBOS: `, ${clients}` }
}
