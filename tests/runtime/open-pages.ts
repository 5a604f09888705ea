import { Agent, request } from 'node:http'

/** Holds so many pages open, as browsers do: `node open-pages.ts <origin> <cookie> <count>`; says when all are, and ends with its input. */
const [, , origin = '', cookie = '', count = '0'] = process.argv
const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })
let open = 0
for (let i = 0; i < Number(count); i++) {
  request(`${origin}/ui/live`, { agent, headers: { cookie } }, response => {
    response.resume()
    if (response.statusCode === 200 && ++open === Number(count)) process.stdout.write('open\n')
  }).end()
}
process.stdin.resume().once('end', () => process.exit())
