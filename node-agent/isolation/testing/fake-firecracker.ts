import { createServer } from 'node:http'
import { requestFault } from '../firecracker/requests.ts'

/**
 * Answers like Firecracker's API and runs no machine: it holds requests to our schema of the API and to the order that
 * the published documentation gives. What passes here has been shaped rightly, and nothing more.
 */
export async function fakeFirecracker(socketPath: string) {
  let state: 'unconfigured' | 'configuring' | 'running' | 'paused' = 'unconfigured'
  const seen = new Set<string>()
  const said: string[] = ['fake: no virtual machine runs behind this socket']

  function refusal(method: string, path: string, body: unknown): string | undefined {
    const fault = requestFault({ method, path, body })
    if (fault !== undefined) return fault
    const key = `${method} ${path}`
    const at = { state, has: (one: string) => seen.has(one) }
    if (path === '/snapshot/load')
      return state === 'unconfigured' ? undefined : 'a snapshot loads only into a fresh process'
    if (path === '/snapshot/create') return state === 'paused' ? undefined : 'the machine is not paused'
    if (path === '/vm') return state === 'running' || state === 'paused' ? undefined : 'no machine runs'
    if (path === '/actions') {
      const action = (body as { action_type: string }).action_type
      if (action !== 'InstanceStart') return state === 'running' ? undefined : 'no machine runs'
      if (at.state === 'running' || at.state === 'paused') return 'the machine has started already'
      return at.has('PUT /boot-source') ? undefined : 'no kernel was given'
    }
    return state === 'running' || state === 'paused' ? `${key} comes before the start` : undefined
  }

  function apply(method: string, path: string, body: unknown): void {
    seen.add(`${method} ${path}`)
    if (path === '/vm') state = (body as { state: string }).state === 'Paused' ? 'paused' : 'running'
    else if (path === '/snapshot/load') state = (body as { resume_vm?: boolean }).resume_vm ? 'running' : 'paused'
    else if (path === '/actions') state = 'running'
    else if (path !== '/snapshot/create') state = 'configuring'
  }

  const server = createServer(async (request, answer) => {
    let text = ''
    for await (const chunk of request) text += chunk
    const [method, path] = [request.method!, request.url!]
    const body: unknown = JSON.parse(text)
    const fault = refusal(method, path, body)
    said.push(`${fault === undefined ? 204 : 400} ${method} ${path}`)
    if (fault === undefined) apply(method, path, body)
    answer.writeHead(fault === undefined ? 204 : 400, { 'content-type': 'application/json' })
    answer.end(fault === undefined ? undefined : JSON.stringify({ fault_message: fault }))
  })
  await new Promise<void>(resolve => server.listen(socketPath, resolve))
  return {
    said,
    close: () => new Promise<void>(resolve => server.close(() => resolve())),
  }
}
