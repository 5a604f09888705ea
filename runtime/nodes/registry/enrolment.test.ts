import { expect, it } from 'vitest'
import { joinCommand } from './enrolment.ts'

it.each([
  ['http://127.0.0.1:8081', 'PLATFORM_CONTROL_URL=http://127.0.0.1:8081 '],
  ['https://0.0.0.0:8081', "PLATFORM_CONTROL_URL='https://<address of the control plane>:8081' "],
  // A node refuses plain text beyond its machine unless PLATFORM_TUNNEL_INSECURE allows it.
  ['http://[::]:9', "PLATFORM_CONTROL_URL='http://<address of the control plane>:9' PLATFORM_TUNNEL_INSECURE=1 "],
  ['http://10.1.2.3:81', 'PLATFORM_CONTROL_URL=http://10.1.2.3:81 PLATFORM_TUNNEL_INSECURE=1 '],
  [undefined, "PLATFORM_CONTROL_URL='<the tunnel address of the control plane>' "],
])('a control plane that listens at %s says what a node has to be started with', (endpoint, vars) => {
  expect(joinCommand(endpoint, 'wb_node_1')).toBe(
    `${vars}PLATFORM_ENROL_TOKEN=wb_node_1 npx --no-install node-agent run`,
  )
})
