import { request } from 'node:http'

/**
 * Open pages of a dashboard, in a process of their own so that what they cost is not the service's: each follows the changes, and looks when
 * it hears of one, as the module of the pages does. Prints `open` once all are, and then how often they have looked, each second.
 */
const [origin = '', cookie = '', path = '', pages = '0'] = process.argv.slice(2)
let looks = 0

async function open(): Promise<void> {
  let etag = ''
  function look(): void {
    looks++
    const headers = { cookie, 'x-look': 'told', 'if-none-match': etag, 'accept-encoding': 'gzip' }
    request(`${origin}/${path}`, { headers }, answer => {
      if (answer.statusCode !== 200 && answer.statusCode !== 304) throw new Error(`it answered ${answer.statusCode}`)
      etag = answer.headers.etag ?? ''
      answer.resume()
    }).end()
  }
  await new Promise<void>((opened, failed) => {
    const line = request(`${origin}/ui/live`, { headers: { cookie }, agent: false }, answer => {
      opened()
      answer.setEncoding('utf8').on('data', (text: string) => {
        if (text.includes('event: changed')) setTimeout(look, 30)
      })
    })
    line.on('error', failed).end()
  })
}

for (let i = 0; i < Number(pages); i += 50) await Promise.all(Array.from({ length: 50 }, open))
process.stdout.write('open\n')
setInterval(() => process.stdout.write(`${looks}\n`), 200)
