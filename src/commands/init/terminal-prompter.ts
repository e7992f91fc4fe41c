/**
 * Questions and answers on a terminal, line by line. What is typed as a secret is neither echoed nor remembered. Ctrl-C, Ctrl-D and a
 * signal end the conversation wherever it is.
 */
import { createInterface } from 'node:readline';
import type { Interface } from 'node:readline';
import { Writable } from 'node:stream';

/** The person has left. */
export class PrompterClosed extends Error {
  override readonly name = 'ConversationEnded';
}

export interface PrompterOptions {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WriteStream;
  /** Ends it as Ctrl-C does. */
  readonly stop: AbortSignal;
}

export class TerminalPrompter implements Disposable {
  readonly #output: NodeJS.WriteStream;
  readonly #interface: Interface;
  readonly #lines: string[] = [];
  #onLine: (() => void) | undefined;
  #isHidden = false;
  #isClosed = false;

  constructor({ input, output, stop }: PrompterOptions) {
    this.#output = output;
    const echo = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        if (!this.#isHidden) output.write(chunk);
        done();
      },
    });
    // Readline breaks a long line where the terminal does.
    Object.defineProperty(echo, 'columns', { get: () => output.columns });
    this.#interface = createInterface({ input, output: echo, terminal: true, historySize: 0 });
    this.#interface.on('line', (line) => {
      // Somebody who pastes several answers at once is not asked again.
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

  /** Writes a line that expects no answer. */
  writeLine(line: string): void {
    this.#output.write(`${line}\n`);
  }

  /** The answer, without blanks around it. @throws ConversationEnded */
  async ask(question: string): Promise<string> {
    return (await this.#readLine(question)).trim();
  }

  /** The answer as it was typed, which nobody sees. @throws ConversationEnded */
  async askSecret(question: string): Promise<string> {
    const answer = await this.#readLine(question, true);
    this.#output.write('\n');
    return answer;
  }

  [Symbol.dispose](): void {
    this.#interface.close();
  }

  async #readLine(question: string, isHidden = false): Promise<string> {
    if (!this.#isClosed) {
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
