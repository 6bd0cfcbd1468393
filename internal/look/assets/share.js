// The share box acts at once, without loading the page. It works without JavaScript too.

import { enhance } from "./forms.js";

enhance();
