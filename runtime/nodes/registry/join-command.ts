import { isLoopback } from '../../../shared/http/bind.ts'

const EVERY_ADDRESS = ['0.0.0.0', '[::]']

/** What starts a node with its enrolment token, for a person to paste; an address that only the person knows is left to fill in. */
export function joinCommand(endpoint: string | undefined, token: string): string {
  return `${control(endpoint)} PLATFORM_ENROL_TOKEN=${token} npx --no-install node-agent run`
}

function control(endpoint: string | undefined): string {
  if (endpoint === undefined) return `PLATFORM_CONTROL_URL='<the tunnel address of the control plane>'`
  const { protocol, hostname } = new URL(endpoint)
  const url = EVERY_ADDRESS.includes(hostname)
    ? `'${endpoint.replace(hostname, '<address of the control plane>')}'`
    : endpoint
  const isPlain = protocol === 'http:' && !isLoopback(hostname.replace(/^\[|\]$/g, ''))
  return `PLATFORM_CONTROL_URL=${url}${isPlain ? ' PLATFORM_TUNNEL_INSECURE=1' : ''}`
}
