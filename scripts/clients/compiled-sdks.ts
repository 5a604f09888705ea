import { execFile } from 'node:child_process'
import { copyFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { makeFolder } from '../../shared/host/make-folder.ts'
import { SDKS_OF_GO, SDKS_OF_MAVEN } from './sdk-programs.ts'

const run = promisify(execFile)

export interface CompiledSdk {
  name: string
  language: string
  /** What has to be on the PATH. */
  tools: readonly string[]
  versions: Readonly<Record<string, string>>
  /** Fetches the packages and compiles the program in a folder; gives the command that runs it. */
  build: (folder: string) => Promise<[string, ...string[]]>
}

const source = (name: string) => fileURLToPath(new URL(`other-languages/${name}`, import.meta.url))
/** The first build fetches and compiles the packages. */
const inside = (cwd: string) => ({ cwd, timeout: 600_000 })

async function buildGo(folder: string): Promise<[string]> {
  const wanted = Object.entries(SDKS_OF_GO).map(([name, version]) => `require ${name} ${version}`)
  await writeFile(join(folder, 'go.mod'), `module sdks\n\ngo 1.24\n\n${wanted.join('\n')}\n`)
  await copyFile(source('main.go'), join(folder, 'main.go'))
  await run('go', ['mod', 'tidy'], inside(folder))
  await run('go', ['build', '-o', 'program', '.'], inside(folder))
  return [join(folder, 'program')]
}

async function buildJava(folder: string): Promise<[string, ...string[]]> {
  const wanted = Object.entries(SDKS_OF_MAVEN).map(([name, version]) => {
    const [group, artifact] = name.split(':')
    return `<dependency><groupId>${group}</groupId><artifactId>${artifact}</artifactId><version>${version}</version></dependency>`
  })
  const project = `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>sdks</groupId><artifactId>sdks</artifactId><version>1</version>
<dependencies>${wanted.join('\n')}</dependencies></project>\n`
  await writeFile(join(folder, 'pom.xml'), project)
  await run('mvn', ['-q', '-B', 'dependency:copy-dependencies', '-DoutputDirectory=lib'], inside(folder))
  await run('javac', ['-cp', 'lib/*', '-d', 'out', source('Main.java')], inside(folder))
  return ['java', '-cp', `${join(folder, 'out')}:${join(folder, 'lib')}/*`, 'Main']
}

export const COMPILED_SDKS: readonly CompiledSdk[] = [
  { name: 'go', language: 'Go', tools: ['go'], versions: SDKS_OF_GO, build: buildGo },
  { name: 'java', language: 'Java', tools: ['javac', 'mvn'], versions: SDKS_OF_MAVEN, build: buildJava },
]

/** The command of a program, or the tool that is missing for it. */
export async function commandOf({ name, tools, build }: CompiledSdk, folder: string) {
  for (const tool of tools)
    try {
      await run('sh', ['-c', `command -v ${tool}`])
    } catch {
      return { missing: tool }
    }
  const own = join(folder, name)
  await makeFolder(own)
  return { command: await build(own) }
}
