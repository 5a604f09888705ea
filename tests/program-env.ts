/** What a program gets of this process's environment: where programs are, and what the engine has compiled already. */
export const programEnv = { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE }
