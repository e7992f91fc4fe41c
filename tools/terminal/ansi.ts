/** What a terminal shows, as HTML: the few colours that the program uses, nothing that moves the cursor. */

const STYLES: Readonly<Record<string, string>> = {
  1: 'font-weight:700;color:#fff',
  2: 'color:#8b949e',
  31: 'color:#ff7b72',
  32: 'color:#56d364',
  33: 'color:#e3b341',
  36: 'color:#76e3ea',
};

const STYLE_SEQUENCE = /\u001b\[([0-9;]*)m/;

const OTHER_SEQUENCES = /\u001b\[[0-9;?]*[A-Zac-ln-z]|\u001b[=>]|\r/g;

/** A page of one terminal window. @param prompt the line that was typed */
export function renderTerminalHtml(prompt: string, output: string, columns: number): string {
  let style = '';
  let body = '';
  const parts = output.replaceAll(OTHER_SEQUENCES, '').trimEnd().split(STYLE_SEQUENCE);
  for (const [at, part] of parts.entries()) {
    if (at % 2 === 1) style = STYLES[part] ?? '';
    else body += `<span style="${style}">${escape(part)}</span>`;
  }
  return `<!doctype html><meta charset="utf-8"><style>
    body { margin: 0; background: #fff; display: inline-block }
    pre { margin: 0; padding: 14px 18px; width: ${String(columns)}ch; background: #0d1117; color: #d6dde4;
      font: 14px/1.35 "DejaVu Sans Mono", "Liberation Mono", monospace; white-space: pre-wrap; word-break: break-all }
    i { color: #56d364; font-style: normal }</style><pre><i>$ </i>${escape(prompt)}\n${body}</pre>`;
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
