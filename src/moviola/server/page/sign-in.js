// The page that asks for a token, in the language that was chosen when the library was open.

import { t, translate } from "./base/language.js";

translate(document);
document.title = `${t("Sign in")} · moviola`;
