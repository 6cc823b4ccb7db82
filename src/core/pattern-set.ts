// Sets of characters in a pattern: literals, ranges and classes, letter case aside.

/** One member: a range of code points, or a class. */
export type Member = { from: number; to: number } | { has: (character: string) => boolean };

export type CharSet = { negated: boolean; members: readonly Member[] };

const word = /^[\p{L}\p{M}\p{N}_]$/u;
const digit = /^\p{Nd}$/u;
const space = /^\s$/u;

/** Whether a code point is part of a word, for `\w` and `\b`. */
export function isWord(code: number): boolean {
  if (code < 128) return (code >= 48 && code <= 57) || (code >= 65 && code <= 90) || code === 95 || lowerCase(code);
  return word.test(String.fromCodePoint(code));
}

function lowerCase(code: number): boolean {
  return code >= 97 && code <= 122;
}

function classMember(expression: RegExp, wanted: boolean): Member {
  return { has: (character) => expression.test(character) === wanted };
}

/** `\d`, `\w`, `\s` and their opposites; null for another letter. */
export function namedClass(letter: string): Member | null {
  switch (letter) {
    case "d":
    case "D":
      return classMember(digit, letter === "d");
    case "w":
    case "W":
      return classMember(word, letter === "w");
    case "s":
    case "S":
      return classMember(space, letter === "s");
    default:
      return null;
  }
}

function propertyExpression(name: string): RegExp | null {
  try {
    return new RegExp(`^\\p{${name}}$`, "u");
  } catch {
    return null;
  }
}

/** `\p{...}` and `\P{...}`, a script's bare name included; null for a property that does not exist. */
export function propertyClass(name: string, wanted: boolean): Member | null {
  if (!/^[A-Za-z_]+(=[A-Za-z_]+)?$/.test(name)) return null;
  const expression = propertyExpression(name) ?? propertyExpression(`Script=${name}`);
  return expression === null ? null : classMember(expression, wanted);
}

export function single(code: number): CharSet {
  return { negated: false, members: [{ from: code, to: code }] };
}

/** Everything but a line feed. */
export const anyCharacter: CharSet = { negated: true, members: [{ from: 10, to: 10 }] };

// The spellings of one letter: itself, small, capital, and the small form of its capital (`ſ` is an `s`).
function spellings(character: string): string[] {
  const upper = character.toUpperCase();
  const forms = [character, character.toLowerCase(), upper, upper.toLowerCase()];
  return [...new Set(forms)].filter((form) => Array.from(form).length === 1);
}

function holds(member: Member, forms: readonly string[]): boolean {
  return forms.some((form) => {
    if ("has" in member) return member.has(form);
    const code = form.codePointAt(0) ?? 0;
    return member.from <= code && code <= member.to;
  });
}

/** Whether the set holds the code point in any letter case. */
export function setHas(set: CharSet, code: number): boolean {
  const forms = spellings(String.fromCodePoint(code));
  return set.members.some((member) => holds(member, forms)) !== set.negated;
}
