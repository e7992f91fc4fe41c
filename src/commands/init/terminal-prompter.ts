/** Reads lines from a terminal. Secrets are neither echoed nor stored. Ctrl-C, Ctrl-D and an abort signal close it at any time. */
import { createInterface, type Interface } from 'node:readline';
import { Writable } from 'node:stream';

export class PrompterClosed extends Error {
  override readonly name = 'PrompterClosed';
}

export interface PrompterOptions {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WriteStream;
  readonly stop: AbortSignal;
  /** Whether the rest of a line is not echoed, from its text so far. Default: none is hidden. */
  readonly hidesLine?: (line: string) => boolean;
}

export class TerminalPrompter implements Disposable {
  readonly #output: NodeJS.WriteStream;
  readonly #interface: Interface;
  readonly #lines: string[] = [];
  #onLine: (() => void) | undefined;
  #isHidden = false;
  #isClosed = false;

  constructor({ input, output, stop, hidesLine = () => false }: PrompterOptions) {
    this.#output = output;
    const echo = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        this.#isHidden ||= hidesLine(this.#interface.line);
        if (!this.#isHidden) output.write(chunk);
        done();
      },
    });
    // Lets readline wrap long lines at the width of the terminal.
    Object.defineProperty(echo, 'columns', { get: () => output.columns });
    this.#interface = createInterface({ input, output: echo, terminal: true, historySize: 0 });
    this.#interface.on('line', (line) => {
      // Kept, since several lines may be pasted at once.
      this.#lines.push(line);
      this.#onLine?.();
    });
    this.#interface.on('SIGINT', () => this.#interface.close());
    this.#interface.on('close', () => {
      this.#isClosed = true;
      this.#onLine?.();
    });
    stop.addEventListener('abort', () => this.#interface.close(), { once: true });
    if (stop.aborted) this.#interface.close();
  }

  writeLine(line: string): void {
    this.#output.write(`${line}\n`);
  }

  /** The input without surrounding blanks. @throws PrompterClosed */
  async ask(question: string): Promise<string> {
    return (await this.#readLine(question)).trim();
  }

  /** A line that follows another one, without echo and without a question. @throws PrompterClosed */
  async readHiddenLine(): Promise<string> {
    return this.#readLine('', true);
  }

  takePendingLines(): readonly string[] {
    return this.#lines.splice(0);
  }

  /** The input without echo. @throws PrompterClosed */
  async askSecret(question: string): Promise<string> {
    const secret = await this.#readLine(question, true);
    this.#output.write('\n');
    return secret;
  }

  [Symbol.dispose](): void {
    this.#interface.close();
  }

  async #readLine(question: string, isHidden = false): Promise<string> {
    if (!this.#isClosed) {
      // Without a question, the beginning of a pasted line may be there already.
      this.#isHidden = isHidden && question === '';
      this.#interface.setPrompt(question);
      this.#interface.prompt();
    }
    this.#isHidden = isHidden;
    while (this.#lines.length === 0 && !this.#isClosed) {
      await new Promise<void>((resolve) => {
        this.#onLine = resolve;
      });
    }
    this.#isHidden = false;
    const line = this.#lines.shift();
    if (line === undefined) throw new PrompterClosed();
    return line;
  }
}
