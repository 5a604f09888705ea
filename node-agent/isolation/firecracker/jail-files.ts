/** Inside the jail; every path is relative to it. */
export const JAIL = {
  kernel: '/vmlinux',
  initrd: '/initramfs',
  vsock: '/agent.vsock',
  state: '/state',
  memory: '/memory',
}

export const API_SOCKET = '/api.sock'
