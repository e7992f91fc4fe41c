/**
 * The README of the npm package: that of the repository without what the package does not have. Links to other files become their text,
 * pictures go, the command of a clone becomes that of the package, and the rest of the code stays as it is. Pure.
 */

/** Also as it is written in PowerShell. */
const COMMAND_IN_CLONE = /\.\/bearer-sidecar(?![\w/])|node_modules\\\.bin\\node\.cmd dist\/main\.js/g;

const NOTE =
  'With this package, `bearer-sidecar sandbox` takes the place of `npm ci && npm start`. Pages and files that are named here and not in it ' +
  'are in the repository.';
/** A picture, and the colon that announces it. */
const PICTURE = /:?\n*(?:<picture>[\s\S]*?<\/picture>|^!\[[^\]]*\]\([^)]*\)$)/gm;
const LINK = /\[((?:[^\]`]|`[^`]*`)+)\]\(([^)\s]+)\)/g;

/**
 * @param files of the package, by their paths
 * @returns the text with links to these files, to headings of the page and to addresses only
 */
export function toPackageReadme(readme: string, files: ReadonlySet<string>): string {
  const isKept = (target: string): boolean =>
    /^(?:#|[a-z]+:)/.test(target) || files.has(target.replace(/#.*$/s, '').replace(/^\.\//, ''));
  const [title = '', ...rest] = splitAtCode(readme)
    .map((part) =>
      part.isCode
        ? part.text
        : part.text
            .replaceAll(PICTURE, (picture) => (picture.startsWith(':') ? '.' : ''))
            .replaceAll(LINK, (link, text: string, target: string) => (isKept(target) ? link : text)),
    )
    .join('')
    .split('\n\n');
  return [title, NOTE, ...rest]
    .join('\n\n')
    .replaceAll(/\n{3,}/g, '\n\n')
    .replaceAll(COMMAND_IN_CLONE, 'bearer-sidecar');
}

/** Fenced blocks are code. Code within a line is not: it may be the text of a link. */
function splitAtCode(text: string): { readonly text: string; readonly isCode: boolean }[] {
  return text.split(/(^```[\s\S]*?^```$)/m).map((part) => ({ text: part, isCode: part.startsWith('```') }));
}
