import { join } from 'node:path'
import { Command, Option } from 'clipanion'
import { USAGE } from '../../shared/cli/exit-code.ts'

/** `node-agent image`: the guest image, from pinned inputs. */
export class ImageCommand extends Command {
  static override paths = [['image']]
  static override usage = Command.Usage({
    description: 'Build the guest image: the agent, a root for containers, and kernel and files for virtual machines.',
    details: `
      Reads the kernel and the tools that scripts/setup-host.sh unpacked, checks the digest of each, compiles the agent with gcc, and
      writes the image to NODE_AGENT_IMAGE_DIR. With --name it goes into a folder of NODE_AGENT_IMAGES_DIR, and manifests choose it by
      that name (image). The same inputs give the same bytes. Nothing is downloaded.
    `,
    examples: [
      ['With interpreters', '$0 image --interpreters'],
      ['With a browser besides', '$0 image --interpreters --browser'],
      ['For agents that ask for it, with files of yours', '$0 image --interpreters --name data --add ./files'],
      ['Elsewhere', '$0 image --out ./guest-image'],
    ],
  })

  inputs = Option.String('--inputs', { description: 'Folder with the inputs and their lock.' })
  out = Option.String('--out', { description: 'Folder for the image (NODE_AGENT_IMAGE_DIR).' })

  name = Option.String('--name', { description: 'The name by which manifests choose the image.' })

  add = Option.String('--add', {
    description:
      'A folder whose files go into the image as they lie in it: usr/local/bin/tool becomes /usr/local/bin/tool.',
  })

  interpreters = Option.Boolean('--interpreters', false, {
    description: 'With Python, Node, pip and npm, for code agents and for the tools python, node and install_packages.',
  })

  browser = Option.Boolean('--browser', false, {
    description: 'With a headless browser, for the tool browse.',
  })

  override async execute(): Promise<number> {
    const { readEnv } = await import('../../shared/env/read-env.ts')
    const { nodeEnv } = await import('../env.ts')
    const { buildImage } = await import('../guest/build-image.ts')
    const { ImageInputError, INPUTS_FOLDER } = await import('../guest/image-inputs.ts')
    const { IMAGE_NAME } = await import('../../shared/wire/runtime/isolation.ts')
    const { name } = this
    if (name !== undefined && (this.out !== undefined || !IMAGE_NAME.test(name))) {
      this.context.stderr.write(
        this.out === undefined
          ? `"${name}" cannot be the name of an image: it takes a lower-case letter, then up to 31 of a-z, 0-9 and "-".\n`
          : 'Give either --name or --out.\n',
      )
      return USAGE
    }
    const env = readEnv(nodeEnv, this.context.env)
    const out = this.out ?? (name === undefined ? env.NODE_AGENT_IMAGE_DIR : join(env.NODE_AGENT_IMAGES_DIR, name))
    try {
      const { outputs, inputs } = await buildImage(this.inputs ?? INPUTS_FOLDER, out, {
        interpreters: this.interpreters,
        browser: this.browser,
        ...(this.add !== undefined && { added: this.add }),
      })
      this.context.stdout.write(`${out}\n`)
      for (const [name, digest] of Object.entries(outputs)) this.context.stdout.write(`  ${digest}  ${name}\n`)
      this.context.stdout.write(`  from ${[...new Set(inputs.map(({ source }) => source))].join(', ')}\n`)
      return 0
    } catch (error) {
      if (!(error instanceof ImageInputError)) throw error
      this.context.stderr.write(`${error.message}\n`)
      return 1
    }
  }
}
